"""The reader of a server: providers by a filter with their facets, and consumers."""

from __future__ import annotations

import pytest

from roost.client.placement import Placement
from roost.client.reading import cloud_reader
from roost.client.reading.cloud_reader import (
    ASSOCIATIONS,
    CloudReader,
    Facet,
    ProviderChoice,
)
from roost.client.reading.consumers import ConsumerReader, consumers_of
from roost.testing import FakePlacement

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
