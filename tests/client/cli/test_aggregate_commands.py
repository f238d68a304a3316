"""`roost aggregate`: groups of providers, their members and totals."""

from __future__ import annotations

import pytest

from support.client.live_providers import LiveProviders
from support.roost_command import roost
from support.transports.tampering import one_server


@pytest.fixture
def rack(live_providers: LiveProviders) -> LiveProviders:
    """A host in a rack, with a GPU below it, and a host outside."""
    live_providers.add("host", totals={"VCPU": 2000}, aggregates=["rack"])
    live_providers.add("gpu", "host", totals={"VGPU": 4})
    live_providers.add("spare", totals={"VCPU": 2})
    live_providers.claim("instance", host={"VCPU": 1500})
    return live_providers


def members(rack: LiveProviders) -> list[str]:
    listed = roost("aggregate", "list", "--json").json
    found = {one["aggregate"]: one["providers"] for one in listed}
    return sorted(rack.short(member["uuid"]) for member in found.get(rack.uuid("rack"), []))


def test_an_aggregate_is_listed_with_its_members(rack: LiveProviders) -> None:
    assert members(rack) == ["host"]
    lines = roost("aggregate", "list").lines
    assert [line.split() for line in lines if rack.uuid("rack") in line] == [
        [rack.uuid("rack"), "1", rack.name("host")]
    ]


def test_the_totals_of_members_count_what_is_below_them(rack: LiveProviders) -> None:
    shown = roost("aggregate", "show", rack.uuid("rack").upper(), "--json").json
    assert [member["name"] for member in shown["providers"]] == [rack.name("host")]
    cpu = {"used": 1500, "capacity": 2000, "free": 500, "reserved": 0, "providers": 1}
    assert shown["totals"]["VCPU"] == cpu
    assert shown["totals"]["VGPU"]["capacity"] == 4
    drawn = roost("aggregate", "show", rack.uuid("rack")).out
    assert "VCPU            1,500     2,000" in drawn


def test_members_are_added_and_removed(rack: LiveProviders) -> None:
    change = ("aggregate", "add", rack.uuid("rack"), rack.name("spare"), rack.name("host"))
    planned = roost(*change, "--dry-run")
    assert planned.lines == [f"{rack.name('spare')}: would be added"]
    assert f"{rack.name('host')} is already in" in planned.err
    assert members(rack) == ["host"]
    assert roost(*change).lines == [f"{rack.name('spare')}: added"]
    assert members(rack) == ["host", "spare"]
    away = roost("aggregate", "remove", rack.uuid("rack"), rack.name("host"), rack.name("gpu"))
    assert away.lines == [f"{rack.name('host')}: removed"]
    assert f"{rack.name('gpu')} is not in" in away.err
    assert members(rack) == ["spare"]


@one_server
@pytest.mark.parametrize("verb", ["show", "add", "remove"])
def test_a_name_is_no_aggregate(rack: LiveProviders, verb: str) -> None:
    refused = roost("aggregate", verb, "rack", *([rack.name("host")] if verb != "show" else []))
    assert refused.status == 2
    assert "Placement knows aggregates by uuid only" in refused.err


@one_server
def test_an_aggregate_without_members_is_not_there(rack: LiveProviders) -> None:
    refused = roost("aggregate", "show", rack.uuid("other"))
    assert refused.status == 1
    assert "Next: roost aggregate list" in refused.err
