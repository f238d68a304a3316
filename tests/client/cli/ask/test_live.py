"""Questions to a live server: its answers have what the pictures draw."""

from __future__ import annotations

import shlex

import pytest

from support.client.live_providers import LiveProviders
from support.roost_command import roost
from support.transports.tampering import one_server

pytestmark = one_server


@pytest.fixture
def hosts(live_providers: LiveProviders) -> LiveProviders:
    """Two hosts with a resource class of their own, of 4 and 8; the second one is half used."""
    resource = live_providers.custom("FPGA")
    live_providers.send("PUT", f"/resource_classes/{resource}", version="1.7")
    live_providers.add("small", totals={resource: 4})
    live_providers.add("large", totals={resource: 8})
    live_providers.claim("instance", large={resource: 4})
    return live_providers


def test_an_explanation_of_a_request_that_is_too_large(hosts: LiveProviders) -> None:
    resource = hosts.custom("FPGA")
    outcome = roost("explain", f"{resource}=6")
    assert outcome.status == 3, outcome.err
    assert outcome.lines[0].startswith("There are no candidates. ")
    (row,) = [line for line in outcome.lines if line.endswith("<- no tree is left")]
    assert row.startswith("room")
    assert f"{resource}=6 free" in row
    assert roost("explain", f"{resource}=4").status == 0


def test_why_one_host_does_not_do(hosts: LiveProviders) -> None:
    resource = hosts.custom("FPGA")
    outcome = roost("why", hosts.name("small"), f"{resource}=6")
    assert outcome.status == 3, outcome.err
    assert f"no candidates on {hosts.name('small')}" in outcome.lines[0]
    (row,) = [line for line in outcome.lines if line.endswith("<- no tree is left")]
    assert row.startswith("room")
    assert roost("why", hosts.name("small"), f"{resource}=4").status == 0
    # The hint asks about the same host, where the changed request fits.
    hint = outcome.lines[-1].strip()
    assert hint.startswith(f"roost why {hosts.name('small')} --from-query ")
    assert roost(*shlex.split(hint)[1:]).lines[0] == (
        f"There are candidates on {hosts.name('small')}."
    )


@pytest.mark.parametrize("command", [["why", "NAME"], ["whatif", "--drain", "NAME", "candidates"]])
def test_a_misspelt_host_gets_near_names(hosts: LiveProviders, command: list[str]) -> None:
    misspelt = hosts.name("small")[:-1]
    words = [word.replace("NAME", misspelt) for word in command]
    outcome = roost(*words, f"{hosts.custom('FPGA')}=1")
    assert outcome.status == 1
    assert f"Near it: {hosts.name('small')}" in outcome.err
    assert outcome.err.splitlines()[-1] == "Next: roost provider list"


def test_candidates_before_and_after_a_drain(hosts: LiveProviders) -> None:
    outcome = roost(
        *("whatif", "--drain", hosts.name("small"), "candidates", f"{hosts.custom('FPGA')}=1"),
        *("-o", "csv"),
    )
    assert outcome.status == 0, outcome.err
    assert outcome.lines[1] == "candidates,2,1,-1"


def test_capacity_before_and_after_new_hosts(hosts: LiveProviders) -> None:
    resource = hosts.custom("FPGA")
    assert roost("capacity", f"{resource}=2", "--output", "json").json["fits"] == 4
    outcome = roost(
        *("whatif", "--add-host", f"3*{hosts.name('large')}", "capacity", f"{resource}=2"),
        *("-o", "csv"),
    )
    assert outcome.status == 0, outcome.err
    assert outcome.lines[1] == "capacity,4,16,+12"


def test_fragmentation_of_a_class(hosts: LiveProviders) -> None:
    resource = hosts.custom("FPGA")
    outcome = roost("fragmentation", f"{resource}=4", "--ask", f"{resource}=5", "-o", "csv")
    assert outcome.status == 0, outcome.err
    assert f"{resource},8,8,0" in outcome.lines


def test_resilience_of_all_hosts(hosts: LiveProviders) -> None:
    del hosts
    outcome = roost("resilience")
    assert outcome.status in (0, 3), outcome.err
    assert "may be lost" in outcome.lines[0] or "may not be lost" in outcome.lines[0]
