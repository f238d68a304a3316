"""The clouds that are measured: their hosts, providers and consumers."""

from __future__ import annotations

import itertools
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from cloud_writer import CloudWriter, mariadb_inserter, postgresql_inserter, sqlite_inserter
from connections import connect_mariadb, connect_postgresql

ZONES, RACKS = 10, 40
POOLS = 10
NODES, FUNCTIONS_PER_NODE = 2, 2
NODE_CPUS, NODE_MEMORY_MB = 64, 262_144

COMPUTE_TRAITS = (
    *("COMPUTE_NODE", "COMPUTE_DEVICE_TAGGING", "COMPUTE_TRUSTED_CERTS", "COMPUTE_RESCUE_BFV"),
    *("COMPUTE_NET_ATTACH_INTERFACE", "COMPUTE_NET_ATTACH_INTERFACE_WITH_TAG"),
    *("COMPUTE_VOLUME_EXTEND", "COMPUTE_VOLUME_MULTI_ATTACH", "COMPUTE_VOLUME_ATTACH_WITH_TAG"),
    *("COMPUTE_IMAGE_TYPE_QCOW2", "COMPUTE_IMAGE_TYPE_RAW", "COMPUTE_IMAGE_TYPE_ISO"),
    *("COMPUTE_STORAGE_BUS_VIRTIO", "COMPUTE_STORAGE_BUS_SCSI"),
)
CPU_TRAITS = (
    *("HW_CPU_X86_SSE", "HW_CPU_X86_SSE2", "HW_CPU_X86_SSE41", "HW_CPU_X86_SSE42"),
    *("HW_CPU_X86_AVX", "HW_CPU_X86_AESNI", "HW_CPU_X86_VMX", "HW_CPU_X86_BMI"),
)
# Traits of newer models, oldest first.
NEWER_CPU_TRAITS = ("HW_CPU_X86_AVX2", "HW_CPU_X86_AVX512F", "HW_CPU_X86_AVX512VNNI")
FUNCTION_TRAITS = ("HW_NIC_SRIOV", "HW_NIC_OFFLOAD_RDMA")
SHARES = "MISC_SHARES_VIA_AGGREGATE"
# Few hosts of a large cloud have this trait, and as few others have more than this disk.
RARE_TRAIT = "CUSTOM_RARE"
RARE_DISK_GB = 50_000


@dataclass
class Cloud:
    """The facts about a cloud that requests and tables need."""

    hosts: int = 0
    providers: int = 0
    consumers: int = 0
    zone: str = ""
    """An aggregate in which a tenth of the hosts are."""
    roots: list[str] = field(default_factory=list)
    nodes: list[str] = field(default_factory=list)
    """The NUMA nodes, `NODES` for each root in turn."""
    hot: list[str] = field(default_factory=list)
    """Providers that are not part of any host."""
    claimable: list[tuple[str, dict[str, int]]] = field(default_factory=list)
    """Providers with resources that can be claimed many times without a change of candidates."""


Fill = Callable[[CloudWriter], Cloud]


def flat(hosts: int, amount: int = 1) -> Fill:
    """Hosts of one provider with about two dozen traits; `amount` multiplies the totals."""

    def fill(writer: CloudWriter) -> Cloud:
        cloud = Cloud(hosts)
        zones = [writer.aggregate() for _ in range(ZONES)]
        cloud.zone = zones[0]
        inventories = {
            "VCPU": 64 * amount,
            "MEMORY_MB": 262_144 * amount,
            "DISK_GB": 2_000 * amount,
        }
        for number in range(hosts):
            root = writer.provider(
                inventories,
                traits=COMPUTE_TRAITS + CPU_TRAITS + NEWER_CPU_TRAITS[: number % 4],
                aggregates=[zones[number % ZONES]],
                ratio=1.0 if amount > 1 else 4.0,
            )
            _note_root(cloud, writer, root, {"VCPU": 1})
        return cloud

    return fill


def occupied(hosts: int, share: float) -> Fill:
    """Hosts of one provider, with consumers of six sizes on this share of their CPU."""
    sizes = ((1, 2_048), (2, 4_096), (4, 8_192), (4, 16_384), (8, 16_384), (16, 32_768))

    def fill(writer: CloudWriter) -> Cloud:
        cloud = Cloud(hosts)
        for _ in range(hosts):
            root = writer.provider({"VCPU": 64, "MEMORY_MB": 262_144, "DISK_GB": 2_000})
            left = int(64 * share)
            while left:
                cpus, memory = writer.random.choice([size for size in sizes if size[0] <= left])
                left -= cpus
                writer.consumer([(root, "VCPU", cpus), (root, "MEMORY_MB", memory)])
                cloud.consumers += 1
            _note_root(cloud, writer, root, {"DISK_GB": 1})
        return cloud

    return fill


def nested(hosts: int, full: float = 0.0, rare: int = 0, *, worn: bool = False) -> Fill:
    """Hosts of seven providers: disk, two NUMA nodes, two network functions below each.

    On a share of the hosts, `full`, no CPU is left. `rare` is the number of hosts with a rare
    trait, and of hosts with a large disk. No two worn hosts are used alike.
    """

    def fill(writer: CloudWriter) -> Cloud:
        cloud = Cloud(hosts)
        zones = [writer.aggregate() for _ in range(ZONES)]
        racks = [writer.aggregate() for _ in range(RACKS)]
        cloud.zone = zones[0]
        step = hosts // rare if rare else 0
        for number in range(hosts):
            _nested_host(
                writer,
                cloud,
                number,
                aggregates=[zones[number % ZONES], racks[number // ZONES % RACKS]],
                is_full=writer.random.random() < full,
                is_worn=worn,
                traits=(RARE_TRAIT,) if rare and number % step == step // 3 else (),
                disk=RARE_DISK_GB if rare and number % step == step // 2 else 2_000,
            )
        return cloud

    return fill


def contested(hosts: int, hot: int, room: int) -> Fill:
    """Hosts of seven providers, and `hot` single providers with `room` VCPU each."""

    def fill(writer: CloudWriter) -> Cloud:
        cloud = nested(hosts)(writer)
        cloud.hot = [writer.uuid_of(writer.provider({"VCPU": room})) for _ in range(hot)]
        return cloud

    return fill


def _nested_host(
    writer: CloudWriter,
    cloud: Cloud,
    number: int,
    *,
    aggregates: list[str],
    is_full: bool,
    is_worn: bool,
    traits: tuple[str, ...],
    disk: int,
) -> None:
    root = writer.provider(
        {"DISK_GB": disk},
        traits=(*COMPUTE_TRAITS[:8], "STORAGE_DISK_SSD", *traits),
        aggregates=aggregates,
    )
    for index in range(NODES):
        cpu_trait = NEWER_CPU_TRAITS[1 if number % 2 else 0]
        node = writer.provider(
            {"VCPU": NODE_CPUS, "MEMORY_MB": NODE_MEMORY_MB}, root, ("HW_NUMA_ROOT", cpu_trait)
        )
        cloud.nodes.append(writer.uuid_of(node))
        functions = [
            writer.provider(
                {"SRIOV_NET_VF": 8}, node, (*FUNCTION_TRAITS, f"CUSTOM_PHYSNET_{physnet}")
            )
            for physnet in range(FUNCTIONS_PER_NODE)
        ]
        cloud.consumers += 1
        if is_worn:
            cloud.consumers += 1
            writer.consumer(
                [
                    (node, "VCPU", writer.random.randint(1, NODE_CPUS - 4)),
                    (node, "MEMORY_MB", writer.random.randint(1, NODE_MEMORY_MB // 2)),
                    *((each, "SRIOV_NET_VF", writer.random.randint(1, 7)) for each in functions),
                ]
            )
        writer.consumer(
            [
                (root, "DISK_GB", 20),
                (node, "VCPU", NODE_CPUS if is_full else 4),
                (node, "MEMORY_MB", 8_192),
                (functions[index % FUNCTIONS_PER_NODE], "SRIOV_NET_VF", 1),
            ]
        )
    _note_root(cloud, writer, root, {"DISK_GB": 1})


def many_shapes(hosts: int, shapes: int) -> Fill:
    """Hosts of seven providers. The last three differ in parent and class in `shapes` ways."""

    def fill(writer: CloudWriter) -> Cloud:
        cloud = Cloud(hosts)
        kinds = itertools.product(range(1 + NODES), range(10))
        variants = list(itertools.combinations_with_replacement(kinds, 3))
        writer.random.shuffle(variants)
        for number in range(hosts):
            root = writer.provider({"DISK_GB": 2_000}, traits=COMPUTE_TRAITS[:8])
            nodes = [
                writer.provider(
                    {"VCPU": NODE_CPUS, "MEMORY_MB": NODE_MEMORY_MB}, root, ("HW_NUMA_ROOT",)
                )
                for _ in range(NODES)
            ]
            writer.provider({"SRIOV_NET_VF": 8}, nodes[0], FUNCTION_TRAITS)
            for place, kind in variants[number % shapes]:
                writer.provider({f"CUSTOM_DEVICE_{kind}": 4}, (root, *nodes)[place])
            _note_root(cloud, writer, root, {"DISK_GB": 1})
        return cloud

    return fill


def wide(hosts: int) -> Fill:
    """Hosts with eight network functions of eight virtual functions each."""

    def fill(writer: CloudWriter) -> Cloud:
        cloud = Cloud(hosts)
        for _ in range(hosts):
            root = writer.provider({"VCPU": 1_000_000}, traits=COMPUTE_TRAITS[:8])
            for _ in range(8):
                writer.provider({"SRIOV_NET_VF": 8}, root, FUNCTION_TRAITS)
            _note_root(cloud, writer, root, {"VCPU": 1})
        return cloud

    return fill


def sharing(hosts: int) -> Fill:
    """Hosts without disk, each of which reaches two of ten storage pools."""

    def fill(writer: CloudWriter) -> Cloud:
        cloud = Cloud(hosts)
        reach = [writer.aggregate() for _ in range(POOLS)]
        cloud.zone = reach[0]
        for number in range(POOLS):
            writer.provider(
                {"DISK_GB": 1_000_000},
                traits=(SHARES, "STORAGE_DISK_SSD"),
                aggregates=[reach[number], reach[(number + 1) % POOLS]],
            )
        for number in range(hosts):
            root = writer.provider(
                {"VCPU": 256, "MEMORY_MB": 262_144},
                traits=COMPUTE_TRAITS + CPU_TRAITS + NEWER_CPU_TRAITS[: number % 4],
                aggregates=[reach[number % POOLS]],
            )
            _note_root(cloud, writer, root, {"VCPU": 1})
        return cloud

    return fill


def _note_root(cloud: Cloud, writer: CloudWriter, root: int, claim: dict[str, int]) -> None:
    uuid = writer.uuid_of(root)
    cloud.roots.append(uuid)
    cloud.claimable.append((uuid, claim))
    cloud.providers = writer.provider_count


def make_sqlite(fill: Fill, path: Path, roost: Path) -> Cloud:
    """Make a cloud in a new SQLite file."""
    create_tables(f"sqlite:///{path}", roost)
    with closing(sqlite3.connect(path)) as connection, connection:
        return _write(fill, CloudWriter(sqlite_inserter(connection)))


def make_in_database(fill: Fill, url: str, roost: Path) -> Cloud:
    """Make a cloud in an empty database of PostgreSQL or MariaDB."""
    create_tables(url, roost)
    return (_in_postgresql if url.startswith("postgresql") else _in_mariadb)(fill, url)


def _in_postgresql(fill: Fill, url: str) -> Cloud:
    with connect_postgresql(url) as connection:
        cloud = _write(fill, CloudWriter(postgresql_inserter(connection)))
        # PostgreSQL would do it by itself, at some moment of the measurement.
        connection.execute("ANALYZE")
        return cloud


def _in_mariadb(fill: Fill, url: str) -> Cloud:
    with connect_mariadb(url) as connection:
        cloud = _write(fill, CloudWriter(mariadb_inserter(connection)))
        connection.commit()
        return cloud


def create_tables(url: str, roost: Path) -> None:
    """Create the tables of Roost in an empty database."""
    subprocess.run([str(roost), "db", "sync", "--db", url], check=True, stdout=subprocess.DEVNULL)


def _write(fill: Fill, writer: CloudWriter) -> Cloud:
    with writer:
        return fill(writer)
