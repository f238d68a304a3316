"""The worlds of the suite's fixtures, and the configuration of their servers."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field

from server import Options
from world import World, new_uuid

SHARES = "MISC_SHARES_VIA_AGGREGATE"


def nothing(_world: World) -> None:
    """No data at all."""


def allocations(world: World) -> None:
    """One provider, used by three consumers of two users."""
    variables = world.variables
    for name in ("ALT_USER_ID", "ALT_RP_UUID", "ALT_RP_NAME"):
        variables[name] = new_uuid()
    user, other_user = variables["USER_ID"], variables["ALT_USER_ID"]
    project = variables["PROJECT_ID"]
    provider = world.provider(variables["RP_NAME"], uuid=variables["RP_UUID"])
    world.inventory(provider, "DISK_GB", 2048, step_size=10, min_unit=10, max_unit=1000)
    world.inventory(provider, "VCPU", 10)
    variables["CONSUMER_0"] = world.allocation(provider, user, project, {"DISK_GB": 1000})
    variables["CONSUMER_ID"] = world.allocation(provider, user, project, {"VCPU": 6})
    variables["ALT_CONSUMER_ID"] = world.allocation(
        provider, other_user, project, {"DISK_GB": 20, "VCPU": 1}
    )


def shared_storage(world: World) -> None:
    """Two hosts with NUMA nodes and network functions, and two storages that they share."""
    aggregate = world.variables["AGG_UUID"] = new_uuid()
    roots = {
        name: world.provider(name, aggregate, variable=f"{name.upper()}_UUID")
        for name in ("cn1", "cn2", "ss", "ss2")
    }
    places = [(host, node) for host in (1, 2) for node in (1, 2)]
    nodes = [
        world.provider(
            f"numa{host}_{node}", parent=roots[f"cn{host}"], variable=f"NUMA{host}_{node}_UUID"
        )
        for host, node in places
    ]
    functions = [
        world.provider(f"pf{host}_{node}", parent=parent, variable=f"PF{host}_{node}_UUID")
        for (host, node), parent in zip(places, nodes, strict=True)
    ]
    for host in (roots["cn1"], roots["cn2"]):
        world.inventory(host, "VCPU", 24, allocation_ratio=16.0)
        world.inventory(host, "MEMORY_MB", 128 * 1024, allocation_ratio=1.5)
    world.traits(roots["cn1"], "HW_CPU_X86_SSE", "HW_CPU_X86_SSE2")
    world.inventory(roots["cn2"], "DISK_GB", 2000, reserved=100, allocation_ratio=1.0)
    for storage in (roots["ss"], roots["ss2"]):
        world.inventory(storage, "DISK_GB", 2000, reserved=100, allocation_ratio=1.0)
        world.traits(storage, SHARES)
    for function in functions:
        world.inventory(function, "SRIOV_NET_VF", 8, allocation_ratio=1.0)


def numa_aggregates(world: World) -> None:
    """Hosts whose aggregates are partly on a NUMA node, and two sharing storages."""
    a, b, c = (world.variables.setdefault(f"AGG{letter}_UUID", new_uuid()) for letter in "ABC")
    host1 = world.provider("cn1", a, variable="CN1_UUID")
    host2 = world.provider("cn2", a, b, variable="CN2_UUID")
    storages = [
        world.provider("ss1", a, variable="SS1_UUID"),
        world.provider("ss2", c, variable="SS2_UUID"),
    ]
    for name, parent, aggregates in (
        ("numa1_1", host1, [c]),
        ("numa1_2", host1, []),
        ("numa2_1", host2, []),
        ("numa2_2", host2, []),
    ):
        variable = f"{name.upper()}_UUID"
        node = world.provider(name, *aggregates, parent=parent, variable=variable)
        world.inventory(node, "VCPU", 24, allocation_ratio=16.0)
    for storage in storages:
        world.inventory(storage, "DISK_GB", 2000, reserved=100, allocation_ratio=1.0)
        world.traits(storage, SHARES)


def numa_network(world: World) -> None:
    """A host with NUMA nodes and agents, a host with network cards, and a shared storage."""
    _numa_network(world, world.provider("cn1"), world.provider("cn2"))


def deep_numa_network(world: World) -> None:
    """Both hosts of numa_network, three levels deep in one tree."""
    top = world.provider("gp1")
    parents = [world.provider(name, parent=top) for name in ("p1", "p2")]
    hosts = [
        world.provider(name, parent=parent)
        for name, parent in zip(("cn1", "cn2"), parents, strict=True)
    ]
    _numa_network(world, *hosts)


def _numa_network(world: World, numa_host: str, network_host: str) -> None:
    world.variables.update(CN1_UUID=numa_host, CN2_UUID=network_host, AGGA_UUID=new_uuid())
    aggregate = world.variables["AGGA_UUID"]
    storage = world.provider("ss1", aggregate, variable="SS1_UUID")
    world.traits(storage, SHARES)
    world.inventory(storage, "DISK_GB", 2000)
    for host in (numa_host, network_host):
        world.aggregates(host, aggregate)
    _fill_numa_host(world, numa_host)
    _fill_network_host(world, network_host)


def _fill_numa_host(world: World, host: str) -> None:
    world.traits(host, "COMPUTE_VOLUME_MULTI_ATTACH")
    node0, node1 = (
        world.provider(f"numa{number}", parent=host, variable=f"NUMA{number}_UUID")
        for number in (0, 1)
    )
    world.traits(node0, "HW_NUMA_ROOT")
    world.traits(node1, "HW_NUMA_ROOT", "CUSTOM_FOO")
    world.inventory(node0, "VCPU", 4)
    world.inventory(node1, "VCPU", 4)
    world.inventory(node0, "MEMORY_MB", 2048, min_unit=512, step_size=256)
    world.inventory(node1, "MEMORY_MB", 2048, min_unit=256, max_unit=1024)
    world.allocation(node0, "numafx-user", "numafx-project", {"VCPU": 2})
    for name, parent, resource_class, total in (
        ("fpga0", node0, "FPGA", 1),
        ("pgpu0", node0, "VGPU", 8),
        ("fpga1_0", node1, "FPGA", 1),
        ("fpga1_1", node1, "FPGA", 1),
    ):
        device = world.provider(name, parent=parent, variable=f"{name.upper()}_UUID")
        world.inventory(device, resource_class, total)
    for agent_name, interface, devices in (
        ("sriov_agent", "DIRECT", [("esn1", 1, 10000), ("esn2", 2, 20000)]),
        ("ovs_agent", "NORMAL", [("br_int", 0, 1000)]),
    ):
        agent = world.provider(agent_name, parent=host, variable=f"{agent_name.upper()}_UUID")
        world.traits(agent, f"CUSTOM_VNIC_TYPE_{interface}")
        for name, network, bandwidth in devices:
            device = world.provider(name, parent=agent, variable=f"{name.upper()}_UUID")
            world.traits(device, f"CUSTOM_PHYSNET{network}")
            world.inventory(device, "NET_BW_EGR_KILOBIT_PER_SEC", bandwidth)


def _fill_network_host(world: World, host: str) -> None:
    world.inventory(host, "VCPU", 8)
    world.allocation(host, "numafx-user", "numafx-project", {"VCPU": 3})
    world.inventory(host, "MEMORY_MB", 2048, min_unit=1024, step_size=128)
    world.inventory(host, "DISK_GB", 1000)
    world.traits(host, "CUSTOM_FOO")
    # For each card: how many virtual functions its physical functions have, on which network.
    for card_number, functions in (
        (1, [(1, 4), (2, 4)]),
        (2, [(1, 2), (2, 2), (1, 2), (2, 2)]),
        (3, [(1, 8)]),
    ):
        card = world.provider(f"nic{card_number}", parent=host, variable=f"NIC{card_number}_UUID")
        world.traits(card, "CUSTOM_HW_NIC_ROOT")
        for number, (network, total) in enumerate(functions, start=1):
            name = f"pf{card_number}_{number}"
            function = world.provider(name, parent=card, variable=f"{name.upper()}_UUID")
            world.traits(function, f"CUSTOM_PHYSNET{network}")
            world.inventory(function, "CUSTOM_VF", total)


def local_storage(world: World) -> None:
    """Three equal hosts with disks of their own."""
    for letter in "ABC":
        world.variables[f"AGG{letter}_UUID"] = new_uuid()
    for number in (1, 2, 3):
        host = world.provider(f"cn{number}", variable=f"CN{number}_UUID")
        world.inventory(host, "VCPU", 24)
        world.inventory(host, "MEMORY_MB", 128 * 1024)
        world.inventory(host, "DISK_GB", 2000)


def granular(world: World) -> None:
    """Three hosts of different equipment, with two shared storages and a shared network."""
    a, b, c = (world.variables.setdefault(f"AGG{letter}", new_uuid()) for letter in "ABC")
    compute = {"VCPU": 8, "MEMORY_MB": 4096}
    disk = {"DISK_GB": 500}
    network = {"SRIOV_NET_VF": 8, "CUSTOM_NET_MBPS": 4000}
    graphics = {"VGPU": 8}
    shared_disk = {"DISK_GB": 1000}
    shared_network = {"SRIOV_NET_VF": 16, "CUSTOM_NET_MBPS": 40000}
    avx = ["HW_CPU_X86_AVX", "HW_CPU_X86_AVX2"]
    dxva = "HW_GPU_API_DXVA"
    ssd = "CUSTOM_DISK_SSD"
    left = compute | disk | graphics | network
    right = compute | disk | graphics
    for name, aggregates, totals, traits in (
        ("cn_left", [a], left, [*avx, dxva, "HW_NIC_DCB_PFC", "CUSTOM_FOO"]),
        ("cn_middle", [a, b], compute | network, [*avx, "HW_CPU_X86_SSE", "HW_NIC_ACCEL_TLS"]),
        ("cn_right", [b, c], right, ["HW_CPU_X86_MMX", dxva, ssd]),
        ("shr_disk_1", [a], shared_disk, [SHARES, ssd]),
        ("shr_disk_2", [a, b], shared_disk, [SHARES]),
        ("shr_net", [c], shared_network, [SHARES]),
    ):
        provider = world.provider(name, *aggregates, variable=name.upper())
        for resource_class, total in totals.items():
            # On the right, one consumer may have only two of the virtual GPUs.
            limited = (name, resource_class) == ("cn_right", "VGPU")
            world.inventory(provider, resource_class, total, max_unit=2 if limited else total)
        world.traits(provider, *traits)


def segments(world: World) -> None:
    """Four hosts, each with agents whose devices are on one or two segments of a network."""
    for number, networks, bridge_bandwidth, function_bandwidth in (
        (0, ["OTHER"], 5000, 10000),
        (1, ["MSN_S1"], 5000, 10000),
        (2, ["MSN_S2"], 5000, 10000),
        (3, ["MSN_S1", "MSN_S2"], 1000, 1000),
    ):
        name = f"compute{number}"
        host = world.provider(name, variable=name)
        world.inventory(host, "VCPU", 8)
        world.inventory(host, "MEMORY_MB", 4096)
        world.inventory(host, "DISK_GB", 500)
        _add_bridges(world, name, host, networks, bridge_bandwidth)
        _add_functions(world, name, host, networks, function_bandwidth)
    # The suite's own fixture exports the agent of compute2 under the name of compute3's.
    world.variables["compute3:sriov_agent"] = world.variables["compute2:sriov_agent"]


def _add_bridges(
    world: World, host_name: str, host: str, networks: list[str], bandwidth: int
) -> None:
    agent_name = f"{host_name}:Open vSwitch agent"
    agent = world.provider(agent_name, parent=host, variable=f"{host_name}:ovs_agent")
    world.inventory(agent, "NET_PACKET_RATE_KILOPACKET_PER_SEC", 1000)
    world.traits(agent, "CUSTOM_VNIC_TYPE_NORMAL")
    for suffix, network in zip(("", "2"), networks, strict=False):
        bridge = world.provider(
            f"{agent_name}:br-ex{suffix}", parent=agent, variable=f"{host_name}:br_ex{suffix}"
        )
        _add_bandwidth(world, bridge, bandwidth)
        world.traits(bridge, "CUSTOM_VNIC_TYPE_NORMAL", f"CUSTOM_PHYSNET_{network}")


def _add_functions(
    world: World, host_name: str, host: str, networks: list[str], bandwidth: int
) -> None:
    direct = [
        f"CUSTOM_VNIC_TYPE_{interface}" for interface in ("DIRECT", "DIRECT_PHYSICAL", "MACVTAP")
    ]
    agent_name = f"{host_name}:NIC Switch agent"
    agent = world.provider(agent_name, parent=host, variable=f"{host_name}:sriov_agent")
    world.traits(agent, *direct)
    for number, network in enumerate(networks):
        function = world.provider(
            f"{agent_name}:enp129s0f{number}", parent=agent, variable=f"{host_name}:pf{number}"
        )
        _add_bandwidth(world, function, bandwidth)
        world.traits(function, *direct, f"CUSTOM_PHYSNET_{network}")


def _add_bandwidth(world: World, device: str, bandwidth: int) -> None:
    world.inventory(device, "NET_BW_EGR_KILOBIT_PER_SEC", bandwidth)
    world.inventory(device, "NET_BW_IGR_KILOBIT_PER_SEC", bandwidth)


@dataclass(frozen=True)
class Fixture:
    """The world and the configuration of one fixture of the suite."""

    fill: Callable[[World], None] = nothing
    options: Options = field(default_factory=dict)
    """The options of the server beyond the usual ones."""
    policy_is_open: bool = False

    def policy(self) -> dict[str, str]:
        """Return the contents of the policy file: overrides of the default rules."""
        if not self.policy_is_open:
            return {}
        # The package of the suite has the names of the rules.
        policies = importlib.import_module("placement.policies")
        return {rule.name: "@" for rule in policies.list_rules() if rule.name != "admin_api"}


FIXTURES = {
    "APIFixture": Fixture(),
    "AllocationFixture": Fixture(allocations),
    "SharedStorageFixture": Fixture(shared_storage),
    "NUMAAggregateFixture": Fixture(numa_aggregates),
    "NUMANetworkFixture": Fixture(numa_network),
    "DeepNUMANetworkFixture": Fixture(deep_numa_network),
    "NonSharedStorageFixture": Fixture(local_storage),
    "GranularFixture": Fixture(granular),
    "NeutronQoSMultiSegmentFixture": Fixture(segments),
    "CORSFixture": Fixture(
        options={
            "cors": {
                "allowed_origin": "http://valid.example.com",
                "allow_headers": "openstack-api-version",
            }
        }
    ),
    "OpenPolicyFixture": Fixture(policy_is_open=True),
    "SecureRBACPolicyFixture": Fixture(options={"oslo_policy": {"enforce_new_defaults": "true"}}),
    "LegacyRBACPolicyFixture": Fixture(options={"oslo_policy": {"enforce_new_defaults": "false"}}),
}
