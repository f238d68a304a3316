"""A search with kept work finds what a search from scratch finds, whatever has changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from roost.model.candidate_query.query import CandidateQuery, RequestGroup
from roost.model.providers import AggregateFilter, TraitFilter
from roost.search.candidates import kept_work
from roost.search.candidates.kept_work import KeptWork
from roost.search.candidates.ranking import CandidateOrder
from roost.search.candidates.scan import AlikeTrees
from roost.search.candidates.search import FoundCandidates, find_candidates
from roost.search.candidates.walks import Batch
from roost.search.forest.forest import Forest
from roost.search.forest.rows import (
    ForestRows,
    InventoryRows,
    MembershipRows,
    ProviderRows,
    UsageRows,
    column,
)
from roost.search.forest.vocabulary import Vocabulary
from support.worlds.forests import CLASSES, Node, rows_of

TRAITS = {"MISC_SHARES_VIA_AGGREGATE": 1, "CUSTOM_GOLD": 2, "CUSTOM_OLD": 3}
RACK = "00000000-0000-4000-8000-00000000000a"
ORDER = CandidateOrder(maximum=1000)


@pytest.fixture(autouse=True)
def _one_tree_per_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roost.search.forest.block_building.BLOCK_PROVIDERS", 1)
    monkeypatch.setattr("roost.search.forest.forest.BLOCK_PROVIDERS", 1)


def rows(totals: list[dict[str, int]], traits: dict[int, str], racked: list[int]) -> ForestRows:
    """Hosts with these totals. `traits` has ids by host, and the racked hosts share a rack."""
    made = rows_of([[Node(None, each)] for each in totals])
    return ForestRows(
        made.providers,
        made.inventories,
        made.usages,
        MembershipRows(column([host + 1 for host in traits]), list(traits.values())),
        MembershipRows(column([host + 1 for host in racked]), [RACK] * len(racked)),
    )


def hosts(
    totals: list[dict[str, int]],
    traits: dict[int, str] | None = None,
    racked: list[int] | None = None,
) -> Forest:
    return Forest.of(rows(totals, traits or {}, racked or []), Vocabulary.of(CLASSES, TRAITS))


def no_rows() -> ForestRows:
    """The rows of a database that is empty."""
    none = column([])
    return ForestRows(
        ProviderRows(none, [], [], none, none),
        InventoryRows(*[none] * 8),
        UsageRows(none, none, none),
        MembershipRows(none, []),
        MembershipRows(none, []),
    )


def claim(forest: Forest, host: int, name: str, amount: int) -> Forest:
    used = UsageRows(column([host + 1]), column([CLASSES[name]]), column([amount]))
    return forest.with_all_usages(used, [host + 1])


class Asker:
    """Asks one question again and again, each time with what the search before has left."""

    def __init__(self, query: CandidateQuery) -> None:
        self._query = query
        self._work: KeptWork | None = None

    def ask(self, forest: Forest) -> list[Batch]:
        """What a search with kept work finds, after a comparison with a search from scratch."""
        found = find_candidates(forest, self._query, ORDER, kept_work=self._work)
        self._work = found.kept_work
        batches = list(found.batches)
        assert batches == list(find_candidates(forest, self._query, ORDER).batches)
        return batches

    def blocks(self, forest: Forest) -> list[int]:
        """The blocks in which the search finds something."""
        return [batch.block_number for batch in self.ask(forest)]


def cpus(amount: int, limit: int | None = None) -> CandidateQuery:
    return CandidateQuery((RequestGroup(resources={"VCPU": amount}),), limit=limit)


def test_a_claim_changes_the_scan_of_its_block() -> None:
    asker, forest = Asker(cpus(8)), hosts([{"VCPU": 8}] * 4)
    assert asker.blocks(forest) == [0, 1, 2, 3]
    full = claim(forest, 2, "VCPU", 1)
    assert asker.blocks(full) == [0, 1, 3]
    assert asker.blocks(claim(full, 2, "VCPU", 0)) == [0, 1, 2, 3]


def test_blocks_that_have_not_changed_are_not_scanned_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scanned: list[int] = []
    scan_block = kept_work.__dict__["scan_block"]

    def noting(forest: Forest, block_number: int, *rest: object) -> object:
        scanned.append(block_number)
        return scan_block(forest, block_number, *rest)

    monkeypatch.setattr(kept_work, "scan_block", noting)
    forest = hosts([{"VCPU": 8}] * 4)
    work = find_candidates(forest, cpus(2), ORDER).kept_work
    assert scanned == [0, 1, 2, 3]
    find_candidates(claim(forest, 2, "VCPU", 1), cpus(2), ORDER, kept_work=work)
    assert scanned == [0, 1, 2, 3, 2]


def test_a_claim_of_a_sharing_provider_that_stays_eligible_leaves_the_scans(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    forest = hosts([{"MEMORY_MB": 8}, {"VCPU": 8}], traits={0: "1"}, racked=[0, 1])
    query = CandidateQuery((RequestGroup(resources={"VCPU": 1, "MEMORY_MB": 1}),))
    work = find_candidates(forest, query, ORDER).kept_work
    scanned: list[int] = []

    def noting(_: Forest, block_number: int, *__: object) -> Iterator[AlikeTrees]:
        scanned.append(block_number)
        yield from ()

    monkeypatch.setattr(kept_work, "scan_block", noting)
    find_candidates(claim(forest, 0, "MEMORY_MB", 2), query, ORDER, kept_work=work)
    assert 1 not in scanned


def test_a_search_changes_nothing_of_the_work_that_it_uses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("roost.search.forest.block_building.BLOCK_PROVIDERS", 4)
    monkeypatch.setattr("roost.search.candidates.scan._FIRST_TREES", 1)
    forest = hosts([{"VCPU": 8}] * 8)
    work = work_of(find_candidates(forest, cpus(2, limit=1), ORDER))
    scans, looked_at = dict(work.scans), dict(work.looked_at)
    alike = [list(scan.alike) for scan in scans.values()]
    assert not scans[0].is_complete
    find_candidates(claim(forest, 7, "VCPU", 8), cpus(2, limit=8), ORDER, kept_work=work)
    assert (work.scans, work.looked_at) == (scans, looked_at)
    assert [list(scan.alike) for scan in work.scans.values()] == alike


def test_a_scan_that_a_limit_ended_goes_on_where_it_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roost.search.forest.block_building.BLOCK_PROVIDERS", 4)
    monkeypatch.setattr("roost.search.candidates.scan._FIRST_TREES", 1)
    forest = hosts([{"VCPU": 8}] * 4)
    few = find_candidates(forest, cpus(2, limit=1), ORDER)
    all_ = find_candidates(forest, cpus(2), ORDER, kept_work=few.kept_work)
    assert list(all_.batches) == list(find_candidates(forest, cpus(2), ORDER).batches)


def test_a_scan_that_does_not_fit_into_memory_is_made_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("roost.search.forest.block_building.BLOCK_PROVIDERS", 4)
    monkeypatch.setattr("roost.search.candidates.scan._FIRST_TREES", 1)
    monkeypatch.setattr(kept_work, "_WORDS_MAX", 100)
    asker, forest = Asker(cpus(2)), hosts([{"VCPU": 8}] * 4)
    found = asker.ask(forest)
    assert asker.ask(forest) == found


def test_scans_take_no_more_memory_than_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worn host is like no other, so each host has a problem of its own."""
    forest = hosts([{"VCPU": 8 + number} for number in range(16)])
    query = CandidateQuery((RequestGroup("_A", {"VCPU": 4}), RequestGroup("_B", {"VCPU": 5})))
    work = work_of(find_candidates(forest, query, ORDER))
    few = kept_words(work) // 2
    monkeypatch.setattr(kept_work, "_WORDS_MAX", few)
    work = work_of(find_candidates(forest, query, ORDER))
    assert kept_words(work) <= few
    # The scans of blocks that stay count, too.
    changed = claim(forest, 15, "VCPU", 1)
    work = work_of(find_candidates(changed, query, ORDER, kept_work=work))
    assert kept_words(work) <= few


def test_the_memory_of_work_grows_with_blocks_and_with_sets() -> None:
    """No host has the memory that the query asks for, so no scan finds a tree."""
    query = CandidateQuery((RequestGroup(resources={"MEMORY_MB": 1}),))
    few, many = hosts([{"VCPU": 8}] * 2), hosts([{"VCPU": 8}] * 200)
    by_blocks = [work_of(find_candidates(forest, query, ORDER)) for forest in (few, many)]
    scans = [sum(scan.words for scan in work.scans.values()) for work in by_blocks]
    assert by_blocks[1].words - scans[1] > 10 * (by_blocks[0].words - scans[0])
    sets = {host: ",".join(map(str, range(4, 5 + host))) for host in range(200)}
    by_sets = work_of(find_candidates(hosts([{"VCPU": 8}] * 200, sets), query, ORDER))
    assert by_sets.words > by_blocks[1].words


def kept_words(work: KeptWork) -> int:
    """The memory of the trees that the scans have found."""
    return sum(scan.words for scan in work.scans.values() if scan.alike)


def test_room_that_slots_contest_on_a_sharing_provider_counts_as_it_is_now() -> None:
    pool = {"MEMORY_MB": 8}
    forest = hosts([pool, {"VCPU": 8}], traits={0: "1"}, racked=[0, 1])
    asker = Asker(
        CandidateQuery(
            (
                RequestGroup(resources={"VCPU": 1}),
                RequestGroup("_A", {"MEMORY_MB": 4}),
                RequestGroup("_B", {"MEMORY_MB": 4}),
            )
        )
    )
    assert len(asker.ask(forest)) == 1
    # Either group still fits, but not both.
    assert not asker.ask(claim(forest, 0, "MEMORY_MB", 2))


def test_a_trait_with_another_id_is_looked_for_by_that_id() -> None:
    forest = hosts([{"VCPU": 8}] * 2, traits={0: "2", 1: "3"})
    gold = RequestGroup("_A", {"VCPU": 1}, TraitFilter(required=("CUSTOM_GOLD",)))
    asker = Asker(CandidateQuery((gold,)))
    assert asker.blocks(forest) == [0]
    ids = TRAITS | {"CUSTOM_GOLD": 3, "CUSTOM_OLD": 2}
    assert asker.blocks(forest.with_vocabulary(Vocabulary.of(CLASSES, ids))) == [1]


LAST = f"{2:036d}"


@pytest.mark.parametrize(
    "place", [RequestGroup(in_tree=LAST), RequestGroup(in_subtree=LAST)], ids=["tree", "subtree"]
)
def test_a_block_that_has_another_number_is_found_under_that_number(place: RequestGroup) -> None:
    forest = hosts([{"VCPU": 8}] * 3)
    asker = Asker(CandidateQuery((replace(place, resources={"VCPU": 1}),)))
    assert asker.blocks(forest) == [2]
    fewer = forest.with_trees(rows_of([[Node(None, {"VCPU": 8})]]), gone_root_ids=[2])
    # The first tree is built anew, and follows the third.
    assert asker.blocks(fewer) == [0]


def test_a_host_that_joins_a_new_aggregate_is_found() -> None:
    forest = hosts([{"VCPU": 8}] * 2)
    racked = AggregateFilter(any_of=((RACK,),))
    asker = Asker(CandidateQuery((RequestGroup("_A", {"VCPU": 1}, aggregates=racked),)))
    assert asker.blocks(forest) == []
    # The first tree is built anew, and follows the second.
    joined = forest.with_trees(rows([{"VCPU": 8}], {}, racked=[0]), gone_root_ids=[])
    assert asker.blocks(joined) == [1]


def test_a_search_with_a_limit_notices_that_blocks_are_gone() -> None:
    forest = hosts([{"VCPU": 8}] * 4)
    asker = Asker(cpus(1, limit=3))
    assert asker.blocks(forest) == [0, 1, 2]
    fewer = forest.with_trees(no_rows(), gone_root_ids=[3, 4])
    assert not work_of(find_candidates(forest, cpus(1, limit=3), ORDER)).finds_the_same_in(fewer)
    assert asker.blocks(fewer) == [0, 1]


def work_of(found: FoundCandidates) -> KeptWork:
    assert found.kept_work is not None
    return found.kept_work


def test_a_search_looks_at_the_blocks_up_to_the_limit() -> None:
    forest = hosts([{"VCPU": 8}] * 4)
    work = work_of(find_candidates(forest, cpus(1, limit=2), ORDER))
    assert work.finds_the_same_in(forest)
    assert work.finds_the_same_in(claim(forest, 2, "VCPU", 1))
    assert not work.finds_the_same_in(claim(forest, 1, "VCPU", 1))
    renamed = forest.with_vocabulary(Vocabulary.of(CLASSES, {}))
    assert not work.finds_the_same_in(renamed)


def test_a_search_that_has_seen_all_blocks_notices_one_more() -> None:
    empty = Forest.of(no_rows(), Vocabulary.of(CLASSES, TRAITS))
    forest = empty.with_trees(rows([{"VCPU": 8}], {}, []), gone_root_ids=[])
    unlimited = work_of(find_candidates(empty, cpus(1), ORDER))
    assert unlimited.finds_the_same_in(empty)
    assert not unlimited.finds_the_same_in(forest)


def test_a_search_looks_at_the_sharing_providers_of_all_blocks() -> None:
    forest = hosts([{"VCPU": 8}, {"VCPU": 8}, {"MEMORY_MB": 8}], {2: "1"}, racked=[0, 1, 2])
    query = CandidateQuery((RequestGroup(resources={"VCPU": 1, "MEMORY_MB": 1}),), limit=1)
    work = work_of(find_candidates(forest, query, ORDER))
    assert work.finds_the_same_in(claim(forest, 1, "VCPU", 1))
    assert not work.finds_the_same_in(claim(forest, 2, "MEMORY_MB", 1))


def test_a_provider_that_begins_to_share_changes_the_answers_of_other_blocks() -> None:
    memory = {"MEMORY_MB": 8}
    both = {"VCPU": 8, "MEMORY_MB": 8}
    forest = hosts([both, both, memory], {2: "2"}, racked=[0, 1, 2])
    query = CandidateQuery((RequestGroup(resources={"VCPU": 1, "MEMORY_MB": 1}),), limit=1)
    work = work_of(find_candidates(forest, query, ORDER))
    assert work.finds_the_same_in(forest)
    sharing = hosts([both, both, memory], {2: "1"}, racked=[0, 1, 2])
    sharing = replace(
        sharing,
        vocabulary=forest.vocabulary,
        blocks=(*forest.blocks[:2], sharing.blocks[2]),
        trait_sets=forest.trait_sets,
        aggregate_sets=forest.aggregate_sets,
    )
    assert not work.finds_the_same_in(sharing)
