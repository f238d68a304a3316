"""The demo cloud: what `roost serve --demo` puts into an empty database."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

from roost.api.extensions.questions.explain import explanation_content
from roost.demo.load import DemoSummary, load_demo
from roost.demo.world import NEARLY_FITS, demo_uuid
from roost.model.providers import AggregateFilter, Provider, ProviderFilter, TraitFilter
from roost.replica.replica import Replica
from roost.service.questions.explain import explain, uuids_in
from roost.service.questions.provider_list import names_of_providers
from roost.service.tables.allocations import get_consumer_allocations, list_project_usages_by_type
from roost.service.tables.inventories import list_inventories, list_provider_usages
from roost.service.tables.providers import create_provider
from roost.store.database import Database
from support.code_blocks import code_blocks
from support.roost_command import roost
from support.servers.live_server import LiveServer
from support.simultaneous_processes import run_together
from support.store.stored_providers import all_providers
from support.worlds.queries import sent_query

README = Path(__file__).parents[2] / "README.md"
ALL = ProviderFilter()
PROJECTS = ("demo-shop", "demo-telecom", "demo-research")

# A process loads worlds and prints how many providers and consumers it loaded.
SCRIPT = """
import sys
from roost.demo.drawings import drawings
from roost.demo.load import load_demo
from roost.store.database import Database, DatabaseOptions

def work():
    database = Database(DatabaseOptions(url=sys.argv[1], sqlite_synchronous=False))
    summary = load_demo(database, list(drawings().values()) if sys.argv[2] == 'drawings' else None)
    print(summary.providers, summary.consumers)
    database.close()
"""


@pytest.fixture(scope="module")
def loaded(
    tmp_path_factory: pytest.TempPathFactory, open_database: Callable[[str], Database]
) -> Iterator[tuple[Database, DemoSummary]]:
    """A database with the demo cloud, which no test changes."""
    database = open_database(f"sqlite:///{tmp_path_factory.mktemp('demo')}/demo.db")
    yield database, load_demo(database)
    database.close()


@pytest.fixture(scope="module")
def demo(loaded: tuple[Database, DemoSummary]) -> Database:
    return loaded[0]


def _names(database: Database, wanted: ProviderFilter) -> list[str]:
    return [provider.name for provider in database.read(all_providers, wanted)]


def _picture(database: Database) -> list[tuple[str, str, str | None, object]]:
    """All providers in order, with their generations and usages."""
    return [
        (
            provider.uuid,
            provider.name,
            provider.parent_uuid,
            database.read(list_provider_usages, provider.uuid),
        )
        for provider in database.read(all_providers, ALL)
    ]


def _having(*traits: str | tuple[str, ...], lacking: tuple[str, ...] = ()) -> TraitFilter:
    return TraitFilter(
        required=tuple(trait for trait in traits if isinstance(trait, str)),
        any_of=tuple(trait for trait in traits if not isinstance(trait, str)),
        forbidden=lacking,
    )


def _hosts_only(names: list[str]) -> list[str]:
    return [name for name in names if name.startswith("demo-host-")]


# Loading


def test_uuids_are_as_documentation_prints_them(demo: Database) -> None:
    def uuid(name: str) -> str:
        (provider,) = demo.read(all_providers, ProviderFilter(name=name))
        return provider.uuid

    assert uuid("demo-host-000") == "8e4c0dd4-8b71-5325-8950-05462821e331"
    assert demo_uuid("demo-zone-north") == "4acdcca9-f69d-5364-989b-580256caf8d4"


def test_the_summary_counts_providers_and_consumers(loaded: tuple[Database, DemoSummary]) -> None:
    database, summary = loaded
    assert summary.loaded
    assert summary.providers == len(database.read(all_providers, ALL))
    consumers = [
        usage
        for project in PROJECTS
        for usage in database.read(list_project_usages_by_type, project, None, None)
    ]
    assert summary.consumers == sum(usage.consumer_count for usage in consumers)
    assert {usage.consumer_type for usage in consumers} == {"INSTANCE", "MIGRATION"}


def test_a_second_load_changes_nothing(demo: Database) -> None:
    before = _picture(demo)
    again = load_demo(demo)
    assert not again.loaded
    assert again == DemoSummary(0, 0)
    assert _picture(demo) == before


def test_a_database_in_use_is_left_alone(empty: Database) -> None:
    empty.write(create_provider, "an operator's host")
    assert not load_demo(empty).loaded
    assert _names(empty, ALL) == ["an operator's host"]


@pytest.mark.slow
def test_one_of_two_processes_loads_and_the_second_reports_that_it_loaded_nothing(
    database_url: str, open_database: Callable[[str], Database]
) -> None:
    database = open_database(database_url)
    ended = run_together(SCRIPT, 2, database_url, "drawings")
    number = len(database.read(all_providers, ALL))
    database.close()
    assert number == 58
    assert sorted(ended) == [(0, "0 0\n", ""), (0, "58 0\n", "")]


@pytest.mark.slow
def test_a_second_process_loads_the_same_cloud_and_shows_no_progress_without_a_terminal(
    demo: Database, empty: Database
) -> None:
    ended = run_together(SCRIPT, 1, empty.options.url, "everything")
    assert _picture(empty) == _picture(demo)
    assert ended == [(0, f"{len(_names(demo, ALL))} 150\n", "")]


# What a newcomer tries first


def test_the_commands_offer_hosts_and_find_nothing_wrong(
    demo: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with LiveServer(str(demo.options.url), tmp_path, workers=1) as server:
        monkeypatch.setenv("ROOST_URL", server.url)
        offered = roost("candidates", "VCPU=4", "--limit", "0").lines[1:]
        assert {line.split()[1][:10] for line in offered} == {"demo-host-"}
        assert roost("doctor").status == 0
        assert roost("audit").status == 0


@pytest.mark.parametrize(
    ("option", "told", "status"),
    [
        ("--demo", "`roost doctor` and `roost audit` find nothing wrong", 0),
        ("--demo-worlds", "`roost doctor` and `roost audit` have one finding", 3),
    ],
)
def test_the_start_tells_what_the_doctor_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str, told: str, status: int
) -> None:
    url = f"sqlite:///{tmp_path}/demo.db"
    with LiveServer(url, tmp_path, workers=1, options=(option,)) as server:
        assert told in server.log
        monkeypatch.setenv("ROOST_URL", server.url)
        for command in ("doctor", "audit"):
            assert roost(command).status == status
        findings = json.loads(roost("audit", "--json").out)["findings"]
        assert [one["provider"]["name"] for one in findings] == ["sharing/SS2"][: status // 3]


# The hosts


def test_a_hundred_hosts_have_two_numa_nodes_with_network_functions(
    demo: Database,
) -> None:
    hosts = demo.read(all_providers, ProviderFilter(traits=_having("COMPUTE_NODE")))
    assert [host.name for host in hosts] == [f"demo-host-{number:03}" for number in range(100)]
    assert all(host.parent_uuid is None for host in hosts)
    functions = demo.read(all_providers, ProviderFilter(traits=_having("HW_NIC_SRIOV")))
    with_functions = {provider.parent_uuid for provider in functions}
    for host in hosts:
        wanted = ProviderFilter(in_tree=host.uuid, traits=_having("HW_NUMA_ROOT"))
        nodes = demo.read(all_providers, wanted)
        assert [node.name for node in nodes] == [f"{host.name}_NUMA0", f"{host.name}_NUMA1"]
        assert {node.parent_uuid for node in nodes} == {host.uuid}
        assert {node.uuid for node in nodes} <= with_functions


def test_hosts_have_several_shapes(demo: Database) -> None:
    def shape(connection: Connection, host: Provider) -> object:
        return tuple(
            sorted(
                (resource_class, inventory.total)
                for provider in all_providers(connection, ProviderFilter(in_tree=host.uuid))
                for resource_class, inventory in list_inventories(
                    connection, provider.uuid
                ).inventories.items()
            )
        )

    hosts = demo.read(all_providers, ProviderFilter(traits=_having("COMPUTE_NODE")))
    assert len({demo.read(shape, host) for host in hosts}) == 6


def test_each_rack_has_a_quarter_of_the_hosts_and_one_sharing_pool(demo: Database) -> None:
    for rack in range(1, 5):
        aggregates = AggregateFilter(((demo_uuid(f"demo-rack-{rack}"),),))
        members = _names(demo, ProviderFilter(aggregates=aggregates))
        assert len(_hosts_only(members)) == 25
        pools = _names(
            demo,
            ProviderFilter(aggregates=aggregates, traits=_having("MISC_SHARES_VIA_AGGREGATE")),
        )
        assert pools == [f"demo-storage-{rack}"]


def test_each_host_is_in_one_of_two_zones(demo: Database) -> None:
    zones = [
        set(_names(demo, ProviderFilter(aggregates=AggregateFilter(((demo_uuid(name),),)))))
        for name in ("demo-zone-north", "demo-zone-south")
    ]
    assert [len(zone) for zone in zones] == [50, 50]
    assert not zones[0] & zones[1]


def test_no_usage_exceeds_the_capacity_and_some_providers_are_partly_full(demo: Database) -> None:
    def read(connection: Connection) -> list[tuple[int, float]]:
        return [
            (used, inventories[resource_class].capacity)
            for provider in all_providers(connection, ALL)
            for inventories in [list_inventories(connection, provider.uuid).inventories]
            for resource_class, used in list_provider_usages(connection, provider.uuid)[1].items()
        ]

    pairs = demo.read(read)
    assert all(used <= capacity for used, capacity in pairs)
    assert sum(0 < used < capacity for used, capacity in pairs) > 100
    assert any(used == capacity for used, capacity in pairs)
    assert any(used == 0 for used, capacity in pairs)


def test_an_instance_is_on_one_host_and_its_migration_on_a_second_host(demo: Database) -> None:
    def hosts(connection: Connection, consumer: str) -> tuple[set[str], str, str | None]:
        held = get_consumer_allocations(connection, demo_uuid(consumer))
        assert held is not None
        used = [
            provider.name.partition("_")[0]
            for allocation in held.allocations
            for provider in all_providers(connection, ProviderFilter(uuid=allocation.provider_uuid))
        ]
        return set(_hosts_only(used)), held.project, held.consumer_type

    for number in range(0, 140, 14):
        instance = demo.read(hosts, f"demo-instance-{number:03}")
        migration = demo.read(hosts, f"demo-migration-{number:03}")
        assert len(instance[0]) == len(migration[0]) == 1
        assert instance[0] != migration[0]
        assert instance[1] == migration[1]
        assert (instance[2], migration[2]) == ("INSTANCE", "MIGRATION")


def test_projects_use_different_resource_classes(demo: Database) -> None:
    def classes(project: str) -> set[str]:
        (usage,) = demo.read(list_project_usages_by_type, project, None, "all")
        return set(usage.resources)

    used = [classes(project) for project in PROJECTS]
    assert "SRIOV_NET_VF" in used[1]
    assert {"PGPU", "VGPU"} <= used[2]
    assert used[0] == {"VCPU", "MEMORY_MB", "DISK_GB"}


# Questions to which the demo cloud answers with some providers, but not all


def test_some_numa_nodes_have_avx512_and_eight_free_dedicated_cpus(demo: Database) -> None:
    nodes = _names(demo, ProviderFilter(traits=_having("HW_NUMA_ROOT")))
    fast = _having("HW_NUMA_ROOT", "HW_CPU_X86_AVX512F")
    modern = _names(demo, ProviderFilter(traits=fast))
    some_cpus = _names(demo, ProviderFilter(traits=fast, resources={"PCPU": 1}))
    many_cpus = _names(demo, ProviderFilter(traits=fast, resources={"PCPU": 8}))
    assert 0 < len(many_cpus) < len(some_cpus) < len(modern) < len(nodes)


def test_some_whole_gpus_are_free(demo: Database) -> None:
    gpus = _names(demo, ProviderFilter(traits=_having("CUSTOM_GPU_A100")))
    free = _names(demo, ProviderFilter(traits=_having("CUSTOM_GPU_A100"), resources={"PGPU": 1}))
    assert 0 < len(free) < len(gpus)


def test_some_functions_on_outside_networks_have_bandwidth_left(demo: Database) -> None:
    outside = _having(("CUSTOM_PHYSNET_NORTH", "CUSTOM_PHYSNET_SOUTH"))
    north = _names(demo, ProviderFilter(traits=_having("CUSTOM_PHYSNET_NORTH")))
    both = _names(demo, ProviderFilter(traits=outside))
    wide = {"SRIOV_NET_VF": 1, "NET_BW_EGR_KILOBIT_PER_SEC": 100_000_000}
    idle = _names(demo, ProviderFilter(traits=outside, resources=wide))
    assert 0 < len(north) < len(both)
    assert 0 < len(idle) < len(both)


def test_some_hosts_of_a_zone_are_not_under_repair(demo: Database) -> None:
    zone = AggregateFilter(((demo_uuid("demo-zone-north"),),))
    everything = _names(demo, ProviderFilter(aggregates=zone))
    working = _names(
        demo,
        ProviderFilter(
            aggregates=zone,
            traits=_having("COMPUTE_VOLUME_MULTI_ATTACH", lacking=("COMPUTE_STATUS_DISABLED",)),
        ),
    )
    assert 0 < len(working) < len(everything)


# A request that nearly fits


def test_the_explanation_of_the_request_that_nearly_fits(demo: Database) -> None:
    found = demo_explanation(demo, NEARLY_FITS)
    assert found["feasible"] is False
    assert found["reason"]["text"] == (
        "No tree has a provider for each of the groups _cpu and _port."
    )
    assert [(miss["root"]["name"], miss["lacks"][0]["text"]) for miss in found["misses"][:3]] == [
        ("demo-host-042", "demo-host-042_NUMA1 has 22 PCPU free, 24 are wanted."),
        ("demo-host-046", "demo-host-046_NUMA1 has 18 PCPU free, 24 are wanted."),
        ("demo-host-082", "demo-host-082_0000:17:00.0 has no trait CUSTOM_PHYSNET_NORTH."),
    ]
    assert [hint["text"] for hint in found["hints"]] == [
        "Ask for 22 PCPU instead of 24 in group _cpu.",
        "Do not require CUSTOM_PHYSNET_NORTH in group _port.",
        "Do not require HW_CPU_X86_AVX512F in group _cpu.",
        "Leave group _port out.",
        "Leave group _cpu out.",
    ]
    assert all(demo_explanation(demo, hint["query"])["feasible"] for hint in found["hints"])


def test_the_readme_shows_what_explain_prints(
    demo: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (block,) = code_blocks(README, "console")
    command, _, shown = block.text.removeprefix("$ ").partition("\n")
    words = shlex.split(command)[1:]
    with LiveServer(str(demo.options.url), tmp_path, workers=1) as server:
        monkeypatch.setenv("ROOST_URL", server.url)
        monkeypatch.setenv("COLUMNS", "100")
        assert roost(*words, "--query").out.strip() == NEARLY_FITS
        outcome = roost(*words)
    printed = outcome.err + outcome.out
    # The page leaves lines out where it shows three dots.
    for part in shown.split("...\n"):
        assert part in printed
    assert printed.startswith(shown.partition("...\n")[0])


def demo_explanation(database: Database, query: str) -> Any:
    """The JSON of `GET /roost/explain`."""
    found = explain(Replica(database).current(), sent_query(query))
    names = database.read(names_of_providers, uuids_in(found.misses))
    return explanation_content(found, names)
