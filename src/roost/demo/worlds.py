"""All that the demo cloud consists of."""

from __future__ import annotations

from roost.demo.drawings import DRAWINGS
from roost.demo.hosts import build_hosts
from roost.demo.tenants import build_tenants
from roost.demo.world import World


def demo_worlds() -> tuple[World, ...]:
    """The drawings, then the hosts. Built anew at each call: only `--demo` needs them."""
    hosts = build_hosts()
    cloud = World(
        "hosts",
        "A hundred NUMA hosts in four racks and two zones, partly in use",
        hosts,
        build_tenants(hosts),
        prefixed=False,
    )
    return (*DRAWINGS, cloud)
