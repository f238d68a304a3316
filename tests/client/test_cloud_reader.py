"""The reader of a server: providers by a filter with their facets, and consumers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from uuid import uuid4

import pytest

from roost.client.errors import UnreadableAnswer
from roost.client.placement import Placement
from roost.client.placement.answers import PROVIDER_FIELDS
from roost.client.questions import Questions
from roost.client.reading import cloud_reader
from roost.client.reading.cloud_provider import CloudProvider
from roost.client.reading.cloud_reader import (
    ASSOCIATIONS,
    CloudReader,
    Facet,
    ProviderChoice,
)
from roost.client.reading.consumers import ConsumerReader, consumers_of
from roost.testing import FakePlacement
from roost.testing.faults import error_answer, json_answer

CONSUMER = "c0ffee00-0000-0000-0000-000000000001"
OTHER_CONSUMER = "c0ffee00-0000-0000-0000-000000000002"


@pytest.fixture
def server() -> FakePlacement:
    made = FakePlacement()
    made.add_provider("rack", inventories={"VCPU": {"total": 8}}, traits=("CUSTOM_GOLD",))
    made.add_provider("shelf", "rack")
    made.add_provider("disk", "shelf", inventories={"DISK_GB": {"total": 100}})
    made.add_provider("other", inventories={"VCPU": {"total": 4}})
    made.claim(CONSUMER, {"rack": {"VCPU": 3}, "other": {"VCPU": 1}})
    made.claim(OTHER_CONSUMER, {"other": {"VCPU": 2}})
    return made


@pytest.fixture
def reader(server: FakePlacement) -> CloudReader:
    return CloudReader(Placement(server))


def names(reader: CloudReader, chosen: ProviderChoice) -> list[str]:
    return sorted(provider.name for provider in reader.providers(chosen))


def test_a_filter_chooses_all_providers_or_trees_or_what_is_below(
    server: FakePlacement, reader: CloudReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, other = server.uuid("disk"), server.uuid("other")
    shelf = Placement(server).provider(server.uuid("shelf"))
    assert shelf is not None
    assert names(reader, ProviderChoice()) == ["disk", "other", "rack", "shelf"]
    assert names(reader, ProviderChoice(in_trees=[disk, disk])) == ["disk", "rack", "shelf"]
    assert names(reader, ProviderChoice(in_trees=[])) == []
    assert names(reader, ProviderChoice(below=[shelf, shelf])) == ["disk", "shelf"]
    # One list of all providers is cheaper than a request for each of many trees.
    monkeypatch.setattr(cloud_reader, "_TREES_MAX", 0)
    server.requests.clear()
    assert names(reader, ProviderChoice(in_trees=[disk])) == ["disk", "rack", "shelf"]
    assert names(reader, ProviderChoice(in_trees=[other])) == ["other"]
    assert {request.path for request in server.requests} == {"/resource_providers"}


def test_a_provider_has_the_facets_that_were_asked_for(
    server: FakePlacement, reader: CloudReader
) -> None:
    told: list[tuple[int, int]] = []
    everything = list(reader.providers(facets=list(Facet), tell=lambda *step: told.append(step)))
    assert told == [(4, 1)] * 4
    found = {provider.name: provider for provider in everything}
    assert found["rack"].inventory("VCPU").total == 8
    assert found["rack"].traits == {"CUSTOM_GOLD"}
    assert found["rack"].used == {"VCPU": 3}
    assert found["rack"].allocations == {CONSUMER: {"VCPU": 3}}
    assert not found["shelf"].inventories
    assert not found["shelf"].used
    server.requests.clear()
    (other,) = reader.providers(
        ProviderChoice(in_trees=[server.uuid("other")]), [Facet.ALLOCATIONS]
    )
    assert other.used == {"VCPU": 3}
    assert other.inventories == {}
    assert len(server.requests) == 2


def test_a_provider_that_is_deleted_meanwhile_is_left_out(
    server: FakePlacement, reader: CloudReader
) -> None:
    disk = server.uuid("disk")
    server.faults.before(
        f"GET */{disk}/inventories", lambda: server.ask("DELETE", f"/resource_providers/{disk}")
    )
    found = reader.providers(facets=[Facet.INVENTORIES])
    assert sorted(provider.name for provider in found) == ["other", "rack", "shelf"]


@pytest.fixture
def cloud() -> FakePlacement:
    """Trees of several levels, a pool that shares, one that is no root, and consumers."""
    made = FakePlacement()
    rack = "aaaaaaaa-0000-4000-8000-000000000001"
    pool = {"DISK_GB": {"total": 500, "reserved": 10, "step_size": 5}}
    sharing = ("MISC_SHARES_VIA_AGGREGATE",)
    made.add_provider("pool", inventories=pool, traits=sharing, aggregates=(rack,))
    made.add_provider("shelf", inventories={"VCPU": {"total": 2}})
    made.add_provider("drawer", "shelf", inventories=pool, traits=sharing, aggregates=(rack,))
    for number in range(5):
        host, node = f"host-{number}", f"numa-{number}"
        made.add_provider(host, traits=("CUSTOM_GOLD",), aggregates=(rack,) if number % 2 else ())
        made.add_provider(node, host, inventories={"VCPU": {"total": 8, "allocation_ratio": 4.0}})
        made.add_provider(f"card-{number}", node, inventories={"VGPU": {"total": number + 1}})
        uuid = f"c0ffee00-0000-0000-0000-{number:012}"
        made.claim(uuid, {node: {"VCPU": number + 1}, "pool": {"DISK_GB": 5}})
    return made


def plain(found: Iterable[CloudProvider]) -> list[CloudProvider]:
    """The providers, with the fields that the client reads."""
    return [
        replace(provider, body={field: provider.body[field] for field in PROVIDER_FIELDS})
        for provider in found
    ]


def by_uuid(found: Iterable[CloudProvider]) -> dict[str, CloudProvider]:
    return {provider.uuid: provider for provider in plain(found)}


def test_whole_trees_and_a_walk_find_the_same(cloud: FakePlacement) -> None:
    whole, walk = CloudReader(Questions(cloud)), CloudReader(Placement(cloud))
    node = Placement(cloud).provider(cloud.uuid("numa-3"))
    assert node is not None
    facets = (*ASSOCIATIONS, Facet.USAGES)
    choices = {
        18: ProviderChoice(),
        3: ProviderChoice(in_trees=[cloud.uuid("card-1")]),
        2: ProviderChoice(below=[node]),
        6: ProviderChoice(in_trees=[cloud.uuid("host-1"), cloud.uuid("host-2"), str(uuid4())]),
    }
    for count, chosen in choices.items():
        cloud.requests.clear()
        found = by_uuid(whole.providers(chosen, facets))
        asked = {request.path for request in cloud.requests} - {"/"}
        assert all(path.startswith("/roost/trees") for path in asked)
        assert found == by_uuid(walk.providers(chosen, facets))
        assert len(found) == count


def test_whole_trees_and_a_walk_find_the_same_trees(cloud: FakePlacement) -> None:
    whole, walk = CloudReader(Questions(cloud)), CloudReader(Placement(cloud))

    def trees(
        reader: CloudReader,
    ) -> dict[str, tuple[list[CloudProvider], dict[str, CloudProvider]]]:
        return {
            tree.providers[0].name: (plain(tree.providers), by_uuid(tree.sharing))
            for tree in reader.whole_trees()
        }

    found = trees(whole)
    assert found == trees(walk)
    assert set(found["host-1"][1]) == {cloud.uuid("pool"), cloud.uuid("drawer")}
    for name in ("host-1", "shelf", "numa-2"):
        root = cloud.uuid(name)
        assert whole.tree_and_usages(root)[1] == walk.tree_and_usages(root)[1]
        one, other = whole.tree(root), walk.tree(root)
        assert set(one.get_provider_uuids()) == set(other.get_provider_uuids())
        for uuid in one.get_provider_uuids():
            assert one.data(uuid) == other.data(uuid)
    assert whole.whole_tree(str(uuid4())) == walk.whole_tree(str(uuid4()))


@pytest.mark.parametrize("parents", [(), (None, None), (None, "none"), ("b", "a"), (None, "b")])
def test_providers_that_are_no_tree_are_no_answer(
    cloud: FakePlacement, parents: tuple[str | None, ...]
) -> None:
    providers = [
        {
            "name": name,
            "uuid": str(uuid4()),
            **({} if parent is None else {"parent": parent}),
            "generation": 0,
            "traits": [],
            "aggregates": [],
            "inventories": {},
            "usages": {},
        }
        for name, parent in zip("ab", parents, strict=False)
    ]
    trees = {"trees": [{"providers": providers, "sharing_providers": []}], "next": None}
    cloud.faults.answer("GET /roost/trees*", json_answer(trees))
    with pytest.raises(UnreadableAnswer):
        list(CloudReader(Questions(cloud)).providers(facets=ASSOCIATIONS))


@pytest.mark.parametrize("status", [404, 403])
def test_a_server_that_shows_no_trees_is_walked(cloud: FakePlacement, status: int) -> None:
    cloud.faults.answer("GET /roost/*", error_answer(status, "Not here."), times=9)
    reader = CloudReader(Questions(cloud))
    assert len(list(reader.providers(facets=ASSOCIATIONS))) == 18


def test_the_associations_of_a_provider_are_those_of_one_generation(
    server: FakePlacement, reader: CloudReader
) -> None:
    uuid = server.uuid("rack")
    body = Placement(server).provider(uuid)
    assert body is not None

    def other_writer() -> None:
        present = server.ask("GET", f"/resource_providers/{uuid}/inventories").json
        present["inventories"] = {"VCPU": {"total": 16}}
        server.ask("PUT", f"/resource_providers/{uuid}/inventories", present)

    server.faults.before("GET */traits", other_writer)
    found = reader.provider(body, ASSOCIATIONS)
    assert found.inventory("VCPU").total == 16
    fresh = Placement(server).provider(uuid)
    assert fresh is not None
    assert found.body["generation"] == fresh["generation"] > body["generation"]


def test_consumers_are_found_by_their_providers(server: FakePlacement, reader: CloudReader) -> None:
    uuids = consumers_of(reader.providers(facets=[Facet.ALLOCATIONS]))
    assert uuids == [CONSUMER, OTHER_CONSUMER]
    unknown = "c0ffee00-0000-0000-0000-000000000003"
    first, second = ConsumerReader(Placement(server)).each([uuids[0], unknown, uuids[1]])
    assert (first.uuid, first.amounts, first.project) == (CONSUMER, {"VCPU": 4}, "project")
    assert (second.uuid, second.type) == (OTHER_CONSUMER, "TEST")
