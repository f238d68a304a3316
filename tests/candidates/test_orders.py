"""`order` of `GET /roost/candidates`: which candidates come first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from roost.api.application import Application
from roost.store.database import Database
from support.api_client import ApiClient, application_client, settings_for
from support.worlds.notation import provider_uuid, write_query
from support.worlds.world import World, Worlds, build_world


def listed(world: World, query: str) -> list[str]:
    """The givers of each candidate, in the order of the answer."""
    return [
        "+".join(sorted(candidate.allocations))
        for candidate in world.extended().ask(query).candidates
    ]


def by_uuid(*names: str) -> list[str]:
    return sorted(names, key=provider_uuid)


HOSTS = "A(VCPU 8 used 6), B(VCPU 8), C(VCPU 4 used 1), D(VCPU 16 used 15)"


def test_packing_prefers_what_leaves_least(worlds: Worlds) -> None:
    assert listed(worlds(HOSTS), "VCPU:2&order=pack") == ["A", "C", "B"]
    assert listed(worlds(HOSTS), "VCPU:2&order=pack&limit=1") == ["A"]


def test_spreading_prefers_what_leaves_most(worlds: Worlds) -> None:
    assert listed(worlds(HOSTS), "VCPU:2&order=spread") == ["B", "C", "A"]


def test_each_class_counts_relative_to_the_largest_tree(worlds: Worlds) -> None:
    # A leaves 8/9 of the VCPUs and 1/100 of the memory, B leaves 1/9 and 1/2.
    world = worlds("A(VCPU 9, MEM 11), B(VCPU 2, MEM 501), C(VCPU 9, MEM 1001)")
    assert listed(world, "VCPU:1,MEM:1&order=pack") == ["B", "A", "C"]


def test_a_tree_counts_as_a_whole(worlds: Worlds) -> None:
    # The children of A have 8 together, each of them less than the one child of B.
    world = worlds("A(VCPU 1), F<A(GOLD 4), G<A(GOLD 4), B(VCPU 1), I<B(GOLD 6)")
    assert listed(world, "GOLD:1&order=pack") == ["I", *by_uuid("F", "G")]
    assert listed(world, "GOLD:1&order=spread") == [*by_uuid("F", "G"), "I"]


def test_equal_trees_come_in_the_order_of_their_uuids(worlds: Worlds) -> None:
    names = [f"H{number}" for number in range(12)]
    world = worlds(", ".join(f"{name}(VCPU 4)" for name in names))
    for order in ("pack", "spread"):
        assert listed(world, f"VCPU:1&order={order}") == by_uuid(*names)


def test_within_a_tree_packing_takes_the_fullest_provider(worlds: Worlds) -> None:
    world = worlds("A(VCPU 4), F<A(GOLD 4), G<A(GOLD 4 used 2), K<A(GOLD 4 used 3)")
    assert listed(world, "GOLD:1&order=pack") == ["K", "G", "F"]
    assert listed(world, "GOLD:1&order=spread") == ["F", "G", "K"]


def test_a_pool_is_packed_like_a_provider_of_the_tree(worlds: Worlds) -> None:
    world = worlds("H(VCPU 4, agg A), *S(DISK 9, agg A), *P(DISK 9 used 8, agg A)")
    assert listed(world, "VCPU:1,DISK:1&order=pack") == ["H+P", "H+S"]


def test_alternatives_come_before_the_order(worlds: Worlds) -> None:
    world = worlds("A(VCPU 8), B(VCPU 4), C(GOLD 8), D(GOLD 4)")
    assert listed(world, "VCPU:1&or_resources=GOLD:1&order=pack") == ["B", "A", "D", "C"]


def test_a_tree_with_very_many_candidates_is_ranked_in_part(
    worlds: Worlds, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("roost.search.candidates.walks._RANKED_MAX", 2)
    world = worlds("A(VCPU 4), F<A(GOLD 1), G<A(GOLD 1), K<A(GOLD 1), B(GOLD 1)")
    answer = world.extended().send("GOLD:1&order=spread")
    assert len(answer.json["allocation_requests"]) == 3
    assert answer.headers["X-Roost-Truncated"] == "3"
    enough = world.extended().send("GOLD:1&order=spread&limit=1")
    assert "X-Roost-Truncated" not in enough.headers


@pytest.mark.parametrize("order", ["first", "random", "pack", "spread"])
def test_an_empty_cloud_has_no_candidates(worlds: Worlds, order: str) -> None:
    assert listed(worlds(""), f"VCPU:1&or_resources=GOLD:1&order={order}") == []


def test_a_random_order_has_every_tree_in_its_first_round(worlds: Worlds) -> None:
    world = worlds(
        ", ".join(f"H{n}(VCPU 4), F{n}<H{n}(GOLD 1), G{n}<H{n}(GOLD 1)" for n in range(6))
    )
    orders = set()
    for seed in range(5):
        found = listed(world, f"VCPU:1,GOLD:1&order=random&seed={seed}")
        assert {givers[-2:] for givers in found[:6]} == {f"H{n}" for n in range(6)}
        assert set(Counter(found).values()) == {1}
        assert found == listed(world, f"VCPU:1,GOLD:1&order=random&seed={seed}")
        orders.add(tuple(found))
    assert len(orders) == 5


def test_a_random_order_without_a_seed_changes(worlds: Worlds) -> None:
    world = worlds(", ".join(f"H{number}(VCPU 4)" for number in range(12)))
    orders = {tuple(listed(world, "VCPU:1&order=random")) for _ in range(5)}
    assert len(orders) > 1


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_every_process_has_the_same_order_whatever_it_has_seen(
    api: ApiClient, database: Database, tmp_path: Path
) -> None:
    """A process that sees providers come and go has its trees at different places."""
    names = [f"H{number}" for number in range(8)]
    build_world(api, ", ".join(f"{name}(VCPU 4)" for name in ["Z", *names]))
    query = f"/roost/candidates?{write_query('VCPU:1')}"
    assert api.get(query).status == 200
    for name in ("Z", "H3"):
        assert api.delete(f"/resource_providers/{provider_uuid(name)}").status == 204
        assert api.get(query).status == 200
    build_world(api, "H3(VCPU 4)")
    started = application_client(Application(settings_for(database, tmp_path), database))
    for order in ("pack", "spread", "random&seed=1"):
        answers = [givers(each, f"{query}&order={order}") for each in (api, started)]
        assert answers[0] == answers[1]
        assert len(answers[0]) == len(names)


def givers(api: ApiClient, path: str) -> Sequence[str]:
    return [next(iter(entry["allocations"])) for entry in api.get(path).json["allocation_requests"]]


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_an_answer_follows_changes_of_a_subtree(api: ApiClient) -> None:
    """A deletion moves the providers of a block, so a kept plan would mean another subtree."""
    build_world(api, "Z(VCPU 4), H(MEM 4), M<H(VCPU 4), N<H(VCPU 4), F<N(VCPU 4)")
    path = f"/roost/candidates?{write_query('VCPU:1&in_subtree=N')}"
    both = {provider_uuid("F"), provider_uuid("N")}
    assert set(givers(api, path)) == both
    assert api.delete(f"/resource_providers/{provider_uuid('Z')}").status == 204
    assert set(givers(api, path)) == both
    assert api.delete(f"/resource_providers/{provider_uuid('F')}").status == 204
    assert givers(api, path) == [provider_uuid("N")]


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_a_name_means_the_provider_that_has_it_now(api: ApiClient) -> None:
    build_world(api, "A(VCPU 4), B(VCPU 4)")
    path = f"/roost/candidates?{write_query('VCPU:1&in_subtree=A')}"
    assert givers(api, path) == [provider_uuid("A")]
    for name, new in (("A", "gone"), ("B", "A")):
        renamed = api.put(f"/resource_providers/{provider_uuid(name)}", {"name": new})
        assert renamed.status == 200, renamed.body
    assert givers(api, path) == [provider_uuid("B")]
