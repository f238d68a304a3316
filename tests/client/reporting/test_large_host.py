"""A host with a thousand providers: the number of requests depends on the change alone."""

from __future__ import annotations

import pytest

from roost.client.reporting.reporter import Reporter
from roost.demo.load import load_worlds
from roost.demo.world import ProviderSpec, World
from roost.store.database import Database
from support.api_client import ApiClient
from support.transports.application import ApplicationTransport
from support.transports.counting import CountingTransport
from support.worlds.seed_world import totals

AVX = "HW_CPU_X86_AVX"


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_one_change_among_a_thousand_providers_is_one_write(
    database: Database, api: ApiClient
) -> None:
    drawn = [ProviderSpec("host", inventories=totals(DISK_GB=100), aggregates=("agg",))]
    for node in (f"numa{number}" for number in range(9)):
        drawn.append(ProviderSpec(node, "host", totals(VCPU=8), (AVX,)))
        functions = [f"{node}/function{number}" for number in range(110)]
        # Few have inventory, because each inventory takes a millisecond to create.
        drawn += [ProviderSpec(name, node, totals(SRIOV_NET_VF=4)) for name in functions[:10]]
        drawn += [ProviderSpec(name, node) for name in functions[10:]]
    leaf = functions[0]
    world = World("large", "", tuple(drawn))
    database.write(load_worlds, [world])
    transport = CountingTransport(ApplicationTransport(api))
    reporter = Reporter(transport)
    tree = reporter.fetch(world.uuid("host"))
    assert len(tree.get_provider_uuids()) == 1000
    tree.update_inventory(world.uuid(leaf), {"SRIOV_NET_VF": {"total": 8}})
    transport.forget()
    reporter.flush(world.uuid("host"), tree)
    assert [str(request) for request in transport.requests] == [
        f"PUT /resource_providers/{world.uuid(leaf)}/inventories"
    ]
    inventories = api.get(f"/resource_providers/{world.uuid(leaf)}/inventories").json
    assert inventories["inventories"]["SRIOV_NET_VF"]["total"] == 8
