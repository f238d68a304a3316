"""What is kept for a question holds as long as its work does, and has a bound."""

from __future__ import annotations

from dataclasses import replace

import pytest

from roost.api.candidates import kept_answers
from roost.api.candidates.kept_answers import KeptAnswers, WholeAnswer
from roost.api.services import Services
from roost.model.candidate_query.query import CandidateQuery, RequestGroup
from roost.search.candidates.kept_work import KeptWork
from roost.search.candidates.ranking import CandidateOrder
from roost.search.candidates.search import find_candidates
from roost.search.forest.forest import Forest
from roost.search.forest.rows import UsageRows, column
from roost.service.questions.explain import Reason
from support.api_client import ApiClient
from support.worlds.forests import CLASSES, Node, forest_of
from support.worlds.notation import provider_uuid
from support.worlds.world import Configured, Worlds
from support.worlds.world import claim as claim_of

HOST = [Node(None, {"VCPU": 8})]
NOWHERE = "00000000-0000-4000-8000-00000000000f"
QUESTION = "resources=VCPU:1", (1, 39)
ANSWER = WholeAnswer(b"{}")
REASON = Reason("room", "", "VCPU", "No provider has room.")


def claim(forest: Forest) -> Forest:
    usages = UsageRows(column([1]), column([CLASSES["VCPU"]]), column([1]))
    return forest.with_all_usages(usages, [1])


def work(forest: Forest, in_tree: str | None = None) -> KeptWork:
    query = CandidateQuery((RequestGroup(resources={"VCPU": 1}, in_tree=in_tree),))
    kept = find_candidates(forest, query, CandidateOrder(maximum=10)).kept_work
    assert kept is not None
    return kept


def test_an_answer_is_found_until_a_block_changes() -> None:
    answers, forest = KeptAnswers(), forest_of([HOST])
    answers.keep(QUESTION, forest, work(forest), ANSWER)
    assert answers.answer(QUESTION, forest) is ANSWER
    assert answers.answer(QUESTION, claim(forest)) is None
    assert answers.work(QUESTION) is not None


def test_a_reason_is_that_of_one_forest() -> None:
    """The tree of the query does not exist, so its search looks at no block. Its reason does."""
    answers, forest = KeptAnswers(), forest_of([HOST])
    answers.keep(QUESTION, forest, work(forest, NOWHERE), ANSWER)
    answers.keep_reason(QUESTION, forest, REASON)
    assert answers.reason(QUESTION, forest) is REASON
    later = claim(forest)
    assert answers.reason(QUESTION, later) is None
    assert answers.answer(QUESTION, later) is ANSWER
    assert answers.reason(QUESTION, later) is None


def test_a_reason_that_comes_late_is_not_that_of_a_newer_forest() -> None:
    answers, forest = KeptAnswers(), forest_of([HOST])
    later = claim(forest)
    answers.keep(QUESTION, later, work(later), ANSWER)
    answers.keep_reason(QUESTION, forest, REASON)
    assert answers.reason(QUESTION, later) is None


def test_a_later_search_does_not_take_over_the_reason_of_an_earlier_forest() -> None:
    answers, forest = KeptAnswers(), forest_of([HOST])
    answers.keep(QUESTION, forest, work(forest), ANSWER)
    answers.keep_reason(QUESTION, forest, REASON)
    later = claim(forest)
    answers.keep(QUESTION, later, work(later), ANSWER)
    assert answers.reason(QUESTION, later) is None


def test_an_answer_that_comes_while_an_older_one_is_checked_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers, forest = KeptAnswers(), forest_of([HOST])
    later, newer = claim(forest), WholeAnswer(b"[]")
    answers.keep(QUESTION, forest, work(forest), ANSWER)

    def overtaken(_: KeptWork, __: Forest) -> bool:
        answers.keep(QUESTION, later, work(later), newer)
        return True

    with monkeypatch.context() as patched:
        patched.setattr(KeptWork, "finds_the_same_in", overtaken)
        answers.answer(QUESTION, later)
    assert answers.answer(QUESTION, later) is newer


def test_an_answer_that_is_too_large_leaves_its_work() -> None:
    answers, forest = KeptAnswers(), forest_of([HOST])
    large = WholeAnswer(b"x" * kept_answers._QUESTION_BYTES_MAX)
    answers.keep(QUESTION, forest, work(forest), large)
    assert answers.answer(QUESTION, forest) is None
    assert answers.work(QUESTION) is not None


def test_work_that_is_too_large_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    answers, forest = KeptAnswers(), forest_of([HOST])
    kept = work(forest)
    monkeypatch.setattr(kept_answers, "_QUESTION_BYTES_MAX", kept_answers._OVERHEAD_BYTES)
    answers.keep(QUESTION, forest, kept, None)
    assert answers.work(QUESTION) is None


def test_the_memory_of_work_counts_as_much_as_that_of_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers, forest = KeptAnswers(), forest_of([HOST])
    kept = replace(work(forest), words=1000)
    monkeypatch.setattr(kept_answers, "BYTES_MAX", 25_000)
    for number in range(4):
        answers.keep((str(number), 1), forest, kept, None)
    assert [number for number in range(4) if answers.work((str(number), 1))] == [2, 3]


def test_questions_that_were_not_asked_for_long_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_answers, "BYTES_MAX", 40_000)
    answers, forest = KeptAnswers(), forest_of([HOST])
    kept, answer = work(forest), WholeAnswer(b"x" * 10_000)
    for number in range(10):
        answers.keep((str(number), 1), forest, kept, answer)
        answers.answer(("0", 1), forest)
    found = [number for number in range(10) if answers.answer((str(number), 1), forest)]
    assert 0 in found
    assert 9 in found
    assert len(found) == 3


def test_answers_that_no_longer_hold_stay_for_few_questions() -> None:
    answers, forest = KeptAnswers(), forest_of([HOST])
    kept = work(forest)
    count = 2 * kept_answers._OUTDATED_MAX
    for number in range(count):
        answers.keep((str(number), 1), forest, kept, ANSWER)
    assert all(answers.work((str(number), 1)) for number in range(count))
    later = claim(forest)
    answers.keep(QUESTION, later, work(later), ANSWER)
    left = [number for number in range(count) if answers.work((str(number), 1))]
    assert len(left) == kept_answers._OUTDATED_MAX - 1


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_an_answer_with_alternatives_follows_the_trees_of_every_alternative(
    configured: Configured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first resources fill their part of the answer before the search sees the last tree."""
    monkeypatch.setattr("roost.search.forest.block_building.BLOCK_PROVIDERS", 1)
    monkeypatch.setattr("roost.search.forest.forest.BLOCK_PROVIDERS", 1)
    monkeypatch.setattr("roost.search.candidates.search._SLOTS_USUAL", 1)
    monkeypatch.setattr("roost.search.candidates.search.CANDIDATES_MAX", 4)
    hosts = ", ".join(f"H{number}(VCPU 4, MEM 4)" for number in range(4))
    world = configured(f"{hosts}, G(GOLD 4)", "[placement]", "max_allocation_candidates = 4")
    asked = world.extended()
    query = "VCPU:1,MEM:1&or_resources=GOLD:4"
    assert [set(found.allocations) for found in asked.ask(query).candidates].count({"G"}) == 1
    claim_of(world.api, "G", "GOLD", 1)
    assert {"G"} not in [set(found.allocations) for found in asked.ask(query).candidates]


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_a_name_that_moves_to_another_provider_during_a_request_spoils_no_later_answer(
    configured: Configured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first request looks up the name before it moves, and takes its forest afterwards."""
    world = configured("A(VCPU 8), B(VCPU 8)")
    forest_of_request = Services.forest

    def forest_after_renames(services: Services) -> Forest:
        monkeypatch.setattr(Services, "forest", forest_of_request)
        rename(world.api, "A", "other")
        rename(world.api, "B", "A")
        return services.forest()

    monkeypatch.setattr(Services, "forest", forest_after_renames)
    asked = world.extended()
    assert [set(found.allocations) for found in asked.ask("VCPU:1&in_tree=A").candidates] == [{"A"}]
    assert [set(found.allocations) for found in asked.ask("VCPU:1&in_tree=A").candidates] == [{"B"}]


def rename(api: ApiClient, provider: str, name: str) -> None:
    """Give a provider of a world another name."""
    answer = api.put(f"/resource_providers/{provider_uuid(provider)}", {"name": name})
    assert answer.status == 200


def test_one_text_has_the_answer_of_each_version(worlds: Worlds) -> None:
    """Summaries of 1.39 show the whole tree, and those of 1.10 only what gives resources."""
    world = worlds("A(VCPU 8), N<A(MEM 8)")
    for _ in range(2):
        assert set(world.ask("VCPU:1", "1.39").summaries) == {"A", "N"}
        assert set(world.ask("VCPU:1", "1.10").summaries) == {"A"}


def test_one_text_is_read_by_the_grammar_of_each_version(worlds: Worlds) -> None:
    world = worlds("A(VCPU 8, T1)")
    for _ in range(2):
        assert world.send("VCPU:1&required=T1", "1.17").status == 200
        assert world.send("VCPU:1&required=T1", "1.16").status == 400


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("query", "limit"),
    [
        ("resources=VCPU:1&resources_A=VCPU:1&group_policy=none", "max_request_groups = 1"),
        ("resources=VCPU:1" + "&required=T1" * 100, "max_query_parameters = 100"),
    ],
    ids=["groups", "parameters"],
)
def test_a_query_that_was_read_under_larger_limits_is_read_again(
    worlds: Worlds, configured: Configured, query: str, limit: str
) -> None:
    assert worlds("A(VCPU 8, T1)").send(query).status == 200
    few = configured("A(VCPU 8, T1)", "[roost]", limit)
    assert few.send(query).status == 400
