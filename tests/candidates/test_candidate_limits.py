"""The number, the choice and the order of candidates: `limit` and the configuration."""

from __future__ import annotations

from collections import Counter
from itertools import permutations

import pytest

from support.api_client import Answer
from support.worlds.notation import parse_world
from support.worlds.world import Configured, Reply, Worlds

on_sqlite = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)

FOUR_HOSTS = "H0(VCPU 4), H1(VCPU 4), H2(VCPU 4), H3(VCPU 4)"
FIVE_HOSTS = f"{FOUR_HOSTS}, H4(VCPU 4)"
THREE_TREES = ", ".join(
    f"H{tree}(VCPU 4), " + ", ".join(f"G{tree}{child}<H{tree}(GOLD 4)" for child in range(4))
    for tree in range(3)
)
DEFAULT_CAP = 100_000
ONE_OF_EACH_PAIR = "resources=VCPU:1&resources_1=GOLD:1"
PLACEMENT = "[placement]"


def givers(reply: Reply) -> list[str]:
    """The providers of each candidate, in the order of the answer."""
    return ["+".join(sorted(candidate.allocations)) for candidate in reply.candidates]


def truncated(answer: Answer) -> str | None:
    """The value of the header that marks an answer as cut, or `None`."""
    headers = {name.lower(): value for name, value in answer.headers.items()}
    return headers.get("x-roost-truncated")


# Order.


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_the_order_in_which_providers_are_made_does_not_matter(
    worlds: Worlds, order: tuple[int, ...]
) -> None:
    trees = ["H(VCPU 4, agg A), N<H(GOLD 2)", "G(VCPU 4, agg A)", "*SS(DISK 10, agg A)"]
    world = worlds(", ".join(trees[number] for number in order))
    world.expect("VCPU:1,DISK:1", "H+SS; G+SS")
    world.expect("resources=DISK:1&resources_1=VCPU:1", "{''=SS _1=H}; {''=SS _1=G}")
    world.expect("resources_1=DISK:1&resources=VCPU:1,GOLD:1", "H[VCPU:1] N[GOLD:1] SS[DISK:1]")


@pytest.mark.parametrize(
    "parts",
    list(permutations(["resources=VCPU:1", "resources_1=GOLD:1", "resources_2=GOLD:1"])),
)
def test_the_order_of_the_groups_does_not_matter(worlds: Worlds, parts: tuple[str, ...]) -> None:
    world = worlds("H(VCPU 4), M<H(GOLD 1), N<H(GOLD 2), K(VCPU 4, GOLD 1)")
    world.expect(
        "&".join(("group_policy=none", *parts)),
        "{''=H _1=M _2=N}; {''=H _1=N _2=M}; {''=H _1=N _2=N}",
    )


# Limit.


@pytest.mark.parametrize("version", ["1.16", "1.28", "1.29", "1.34", "1.39"])
@pytest.mark.parametrize(("limit", "expected"), [(1, 1), (2, 2), (4, 4), (9, 4), (10**30, 4)])
def test_a_limit_bounds_the_candidates_and_their_summaries(
    worlds: Worlds, limit: int, expected: int, version: str
) -> None:
    reply = worlds(FOUR_HOSTS).ask(f"VCPU:1&limit={limit}", version)
    assert len(reply.candidates) == expected
    assert sorted(givers(reply)) == sorted(reply.summaries)
    assert truncated(reply.answer) is None


def test_a_limit_counts_the_candidates_that_the_version_shows(worlds: Worlds) -> None:
    # Three of the five candidates take from two providers of one tree.
    world = worlds("R(VCPU 4, MEM 4), N<R(VCPU 4), M<R(VCPU 4), L<R(VCPU 4), F(VCPU 4, MEM 4)")
    assert sorted(givers(world.ask("VCPU:1,MEM:1&limit=2", "1.28"))) == ["F", "R"]
    assert len(world.ask("VCPU:1,MEM:1&limit=2", "1.29").candidates) == 2
    assert len(world.ask("VCPU:1,MEM:1&limit=4", "1.29").candidates) == 4
    assert len(world.ask("VCPU:1,MEM:1&limit=9", "1.29").candidates) == 5


# The default configuration.


@pytest.fixture(scope="module")
def many() -> str:
    """A world with 47 times 47 times 47 candidates, more than the cap."""
    return "R(), " + ", ".join(f"N{n}<R(VCPU 4, MEM 4, DISK 4)" for n in range(47))


@pytest.mark.slow
def test_an_answer_of_more_than_100_000_candidates_is_cut_and_marked(
    worlds: Worlds, many: str
) -> None:
    answer = worlds(many).send("VCPU:1,MEM:1,DISK:1", "1.29")
    assert answer.body.count(b'"allocations"') == DEFAULT_CAP
    assert truncated(answer) == str(DEFAULT_CAP)


@on_sqlite
@pytest.mark.slow
def test_the_cap_can_be_lifted(configured: Configured, many: str) -> None:
    answer = configured(many, PLACEMENT, "max_allocation_candidates = -1").send(
        "VCPU:1,MEM:1,DISK:1", "1.29"
    )
    assert answer.body.count(b'"allocations"') == 47**3
    assert truncated(answer) is None


def test_an_answer_with_a_limit_below_the_cap_is_not_marked(worlds: Worlds, many: str) -> None:
    reply = worlds(many).ask("VCPU:1,MEM:1,DISK:1&limit=1000")
    assert len(reply.candidates) == len(set(map(str, reply.candidates))) == 1000
    assert truncated(reply.answer) is None


def test_an_answer_below_the_cap_is_whole(worlds: Worlds) -> None:
    reply = worlds(THREE_TREES).ask(ONE_OF_EACH_PAIR)
    assert len(reply.candidates) == 12
    assert truncated(reply.answer) is None


# [placement]max_allocation_candidates


@on_sqlite
@pytest.mark.parametrize(
    ("limit", "expected", "cut"),
    [("", 2, "2"), ("&limit=1", 1, None), ("&limit=2", 2, None), ("&limit=3", 2, "2")],
)
def test_the_configured_maximum_bounds_the_answer(
    configured: Configured, limit: str, expected: int, cut: str | None
) -> None:
    reply = configured(FOUR_HOSTS, PLACEMENT, "max_allocation_candidates = 2").ask(f"VCPU:1{limit}")
    assert len(set(givers(reply))) == len(reply.candidates) == expected
    assert truncated(reply.answer) == cut


@on_sqlite
@pytest.mark.parametrize("maximum", [4, 5])
def test_a_maximum_that_is_not_exceeded_does_not_cut(configured: Configured, maximum: int) -> None:
    reply = configured(FOUR_HOSTS, PLACEMENT, f"max_allocation_candidates = {maximum}").ask(
        "VCPU:1"
    )
    assert sorted(givers(reply)) == ["H0", "H1", "H2", "H3"]
    assert truncated(reply.answer) is None


@on_sqlite
def test_an_empty_answer_is_not_marked(configured: Configured) -> None:
    reply = configured(FOUR_HOSTS, PLACEMENT, "max_allocation_candidates = 1").ask("VCPU:9")
    assert givers(reply) == []
    assert truncated(reply.answer) is None


# [placement]allocation_candidates_generation_strategy


def trees_of(reply: Reply) -> list[int]:
    """The number of candidates of each tree, the largest first."""
    # The children of H1 are G10, G11, ...
    trees = Counter(sorted(candidate.allocations)[-1] for candidate in reply.candidates)
    return sorted(trees.values(), reverse=True)


@on_sqlite
@pytest.mark.parametrize(
    ("strategy", "expected"),
    [("depth-first", [4]), ("breadth-first", [2, 1, 1]), (None, [2, 1, 1])],
)
def test_the_strategy_decides_which_candidates_are_left_under_the_maximum(
    configured: Configured, strategy: str | None, expected: list[int]
) -> None:
    chosen = [f"allocation_candidates_generation_strategy = {strategy}"] if strategy else []
    world = configured(THREE_TREES, PLACEMENT, "max_allocation_candidates = 4", *chosen)
    reply = world.ask(ONE_OF_EACH_PAIR)
    assert trees_of(reply) == expected
    assert truncated(reply.answer) == "4"


@on_sqlite
@pytest.mark.parametrize("strategy", ["depth-first", "breadth-first"])
def test_the_strategy_changes_nothing_without_a_maximum(
    configured: Configured, strategy: str
) -> None:
    option = f"allocation_candidates_generation_strategy = {strategy}"
    world = configured(THREE_TREES, PLACEMENT, option)
    reply = world.ask(ONE_OF_EACH_PAIR)
    assert trees_of(reply) == [4, 4, 4]
    assert truncated(reply.answer) is None


# [placement]randomize_allocation_candidates


@on_sqlite
@pytest.mark.parametrize("is_extended", [False, True])
def test_a_random_order_differs_from_answer_to_answer(
    configured: Configured, is_extended: bool
) -> None:
    world = configured(FIVE_HOSTS, PLACEMENT, "randomize_allocation_candidates = true")
    world = world.extended() if is_extended else world
    orders = [givers(world.ask("VCPU:1")) for _ in range(10)]
    assert len(set(map(tuple, orders))) > 1
    hosts = [provider.name for provider in parse_world(FIVE_HOSTS)]
    assert [sorted(order) for order in orders] == [hosts] * 10


@on_sqlite
def test_a_random_order_makes_the_choice_under_a_limit_random(configured: Configured) -> None:
    world = configured(FIVE_HOSTS, PLACEMENT, "randomize_allocation_candidates = true")
    replies = [world.ask("VCPU:1&limit=2") for _ in range(20)]
    assert {len(reply.candidates) for reply in replies} == {2}
    assert len({frozenset(givers(reply)) for reply in replies}) > 1
    assert not any(truncated(reply.answer) for reply in replies)


@on_sqlite
def test_a_random_order_keeps_to_the_maximum(configured: Configured) -> None:
    world = configured(
        FIVE_HOSTS,
        PLACEMENT,
        "randomize_allocation_candidates = true",
        "max_allocation_candidates = 3",
    )
    reply = world.ask("VCPU:1")
    assert len(set(givers(reply))) == 3
    assert truncated(reply.answer) == "3"
