"""The requests of fetches and flushes: which, how many, in which order."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from roost.client.drivers.driver import Allocations
from roost.client.provider_tree import ProviderTree
from roost.client.reporting.reporter import Reporter
from support.client.live_providers import LiveProviders
from support.stubs.scripted_drivers import EditingDriver
from support.transports.counting import CountingTransport
from support.transports.tampering import TamperingTransport, one_server, refusal

SHARES = "MISC_SHARES_VIA_AGGREGATE"
AVX = "HW_CPU_X86_AVX"
TREE = "GET /resource_providers?in_tree=host"
SHARING = f"GET /resource_providers?member_of=in:agg&required={SHARES}"
CREATE = "POST /resource_providers"


@dataclass
class Clock:
    """A clock that a test moves."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def reporter(transport: CountingTransport, clock: Clock) -> Reporter:
    return Reporter(transport, refresh_seconds=300, reread_seconds=3600, clock=clock)


def reads(*shorts: str) -> list[str]:
    """The requests that read the associations of these providers."""
    kinds = ("inventories", "aggregates", "traits")
    return [f"GET {short}/{kind}" for short in shorts for kind in kinds]


# Fetching


def test_a_tree_needs_a_list_three_reads_for_each_member_and_one_for_all_aggregates(
    live_providers: LiveProviders, reporter: Reporter, transport: CountingTransport
) -> None:
    host = live_providers.add("host", aggregates=["agg"])
    live_providers.add("child", "host", aggregates=["agg"])
    live_providers.add("grandchild", "child")
    live_providers.add("disk", traits=[SHARES], aggregates=["agg"])
    reporter.fetch(host)
    asked = live_providers.in_words(transport.requests)
    assert asked[0] == TREE
    members = reads("host", "child", "grandchild")
    # Several members are read at the same time; the inventories of each come first.
    assert sorted(asked[1:10]) == sorted(members)
    for short in ("host", "child", "grandchild"):
        assert [text for text in asked if f" {short}/" in text] == reads(short)
    assert asked[10:] == [SHARING, *reads("disk")]


@one_server
def test_a_tree_without_aggregates_needs_no_query_for_sharing_providers(
    live_providers: LiveProviders, reporter: Reporter, transport: CountingTransport
) -> None:
    reporter.fetch(live_providers.add("host"))
    assert live_providers.in_words(transport.requests) == [TREE, *reads("host")]


@one_server
def test_a_cached_tree_is_not_read_again_for_a_while(
    live_providers: LiveProviders, reporter: Reporter, transport: CountingTransport, clock: Clock
) -> None:
    host = live_providers.add("host", totals={"VCPU": 4})
    first = reporter.fetch(host)
    transport.forget()
    clock.now = 299
    assert reporter.fetch(host).data(host) == first.data(host)
    assert not transport.requests


def test_only_generations_are_compared_after_the_refresh_time(
    live_providers: LiveProviders, reporter: Reporter, transport: CountingTransport, clock: Clock
) -> None:
    host = live_providers.add("host", totals={"VCPU": 4}, traits=[AVX], aggregates=["agg"])
    live_providers.add("child", "host", totals={"VCPU": 4})
    live_providers.add("disk", totals={"DISK_GB": 9}, traits=[SHARES], aggregates=["agg"])
    first = reporter.fetch(host)
    transport.forget()
    clock.now = 300
    again = reporter.fetch(host)
    assert live_providers.in_words(transport.requests) == [TREE, SHARING]
    assert [again.data(uuid) for uuid in again.get_provider_uuids()] == [
        first.data(uuid) for uuid in first.get_provider_uuids()
    ]
    clock.now = 599
    transport.forget()
    reporter.fetch(host)
    assert not transport.requests, "the comparison counts as a refresh"


@one_server
def test_a_refresh_reads_changed_and_new_providers(
    live_providers: LiveProviders, reporter: Reporter, transport: CountingTransport, clock: Clock
) -> None:
    host = live_providers.add("host", totals={"VCPU": 4})
    for short in ("moved", "gone"):
        live_providers.add(short, "host", totals={"VCPU": 4})
    reporter.fetch(host)
    live_providers.set_totals("moved", VCPU=8)
    live_providers.delete("gone")
    live_providers.add("new", "host", totals={"VCPU": 2})
    transport.forget()
    clock.now = 300
    tree = reporter.fetch(host)
    asked = live_providers.in_words(transport.requests)
    assert asked[0] == TREE
    assert sorted(asked[1:]) == sorted(reads("moved", "new"))
    assert {
        live_providers.short(uuid): tree.data(uuid).inventory["VCPU"]["total"]
        for uuid in tree.get_provider_uuids()
    } == {"host": 4, "moved": 8, "new": 2}
    assert tree.data(live_providers.uuid("moved")).generation == 2


@one_server
def test_a_refresh_queries_the_sharing_providers_again(
    live_providers: LiveProviders, reporter: Reporter, transport: CountingTransport, clock: Clock
) -> None:
    host = live_providers.add("host", aggregates=["agg"])
    live_providers.add("disk", traits=[SHARES], aggregates=["agg"])
    reporter.fetch(host)
    live_providers.set_aggregates("disk")
    live_providers.add("link", traits=[SHARES], aggregates=["agg"])
    transport.forget()
    clock.now = 300
    assert live_providers.shorts(reporter.fetch(host).get_provider_uuids()) == ["host", "link"]
    assert live_providers.in_words(transport.requests) == [TREE, SHARING, *reads("link")]


def test_the_whole_tree_is_read_again_after_the_reread_time(
    live_providers: LiveProviders, reporter: Reporter, transport: CountingTransport, clock: Clock
) -> None:
    host = live_providers.add("host", aggregates=["agg"])
    reporter.fetch(host)
    live_providers.set_aggregates_unseen("host")
    clock.now = 3599
    assert reporter.fetch(host).data(host).aggregates == {live_providers.uuid("agg")}
    transport.forget()
    clock.now = 3600
    assert reporter.fetch(host).data(host).aggregates == set()
    assert live_providers.in_words(transport.requests) == [TREE, *reads("host")]


@one_server
def test_a_cached_tree_is_never_read_again_with_zero_seconds(
    live_providers: LiveProviders, transport: CountingTransport, clock: Clock
) -> None:
    host = live_providers.add("host")
    reporter = Reporter(transport, refresh_seconds=0, reread_seconds=0, clock=clock)
    reporter.fetch(host)
    transport.forget()
    clock.now = 1e9
    reporter.fetch(host)
    assert not transport.requests


# Flushing


@one_server
def test_a_flush_without_changes_sends_nothing(
    live_providers: LiveProviders, reporter: Reporter, transport: CountingTransport
) -> None:
    host = live_providers.add("host", totals={"VCPU": 4}, traits=[AVX], aggregates=["agg"])
    tree = reporter.fetch(host)
    tree.update_inventory(host, {"VCPU": {"total": 4}})
    tree.update_traits(host, [AVX])
    tree.update_aggregates(host, [live_providers.uuid("agg")])
    transport.forget()
    reporter.flush(host, tree)
    assert not transport.requests


def test_one_change_is_one_request(
    live_providers: LiveProviders, reporter: Reporter, transport: CountingTransport
) -> None:
    host = live_providers.add("host", totals={"VCPU": 4})
    child = live_providers.add(
        "child", "host", totals={"VCPU": 4}, traits=[AVX], aggregates=["agg"]
    )
    tree = reporter.fetch(host)
    tree.update_inventory(child, {"VCPU": {"total": 8}})
    transport.forget()
    reporter.flush(host, tree)
    (write,) = transport.requests
    assert live_providers.in_words([write]) == ["PUT child/inventories"]
    assert write.version == "1.26"
    assert write.body == {
        "resource_provider_generation": 3,
        "inventories": {"VCPU": {"total": 8}},
    }


def test_new_names_of_a_tree_need_one_query_of_each_kind(
    live_providers: LiveProviders, reporter: Reporter, transport: CountingTransport
) -> None:
    host, child = live_providers.uuid("host"), live_providers.uuid("child")
    pearls, shells = live_providers.custom("PEARLS"), live_providers.custom("SHELLS")
    gold, silver = live_providers.custom("GOLD"), live_providers.custom("SILVER")
    tree = reporter.fetch(host)
    tree.new_child(live_providers.name("child"), host, child)
    tree.update_inventory(host, {pearls: {"total": 1}, "VCPU": {"total": 1}})
    tree.update_inventory(child, {pearls: {"total": 1}, shells: {"total": 1}})
    tree.add_traits(host, gold, AVX)
    tree.add_traits(child, gold, silver)
    transport.forget()
    reporter.flush(host, tree)
    words = dict(
        zip(
            live_providers.in_words(transport.requests),
            (request.version for request in transport.requests),
            strict=True,
        )
    )
    assert list(words.items()) == [
        (CREATE, "1.20"),
        ("GET /resource_classes", "1.2"),
        (f"PUT /resource_classes/{pearls}", "1.7"),
        (f"PUT /resource_classes/{shells}", "1.7"),
        ("PUT child/inventories", "1.26"),
        (f"GET /traits?name=in:{gold},{silver},{AVX}", "1.6"),
        (f"PUT /traits/{gold}", "1.6"),
        (f"PUT /traits/{silver}", "1.6"),
        ("PUT child/traits", "1.6"),
        ("PUT host/inventories", "1.26"),
        ("PUT host/traits", "1.6"),
    ]
    names = [request for request in transport.requests if "/CUSTOM_" in request.path]
    assert all(request.content() is None for request in names), "names are sent without a body"


@one_server
def test_known_names_are_not_queried_again(
    live_providers: LiveProviders, reporter: Reporter, transport: CountingTransport
) -> None:
    host, pearls, gold = (
        live_providers.uuid("host"),
        live_providers.custom("PEARLS"),
        live_providers.custom("GOLD"),
    )
    for total, traits in ((1, [gold]), (2, []), (3, [gold])):
        tree = reporter.fetch(host)
        tree.update_inventory(host, {pearls: {"total": total}})
        tree.update_traits(host, traits)
        transport.forget()
        reporter.flush(host, tree)
    assert live_providers.in_words(transport.requests) == [
        "PUT host/inventories",
        "PUT host/traits",
    ]


@one_server
def test_known_names_are_not_queried_again_after_a_conflict(
    live_providers: LiveProviders, tampering: TamperingTransport, transport: CountingTransport
) -> None:
    host, pearls, gold = (
        live_providers.add("host"),
        live_providers.custom("PEARLS"),
        live_providers.custom("GOLD"),
    )
    driver = EditingDriver(
        lambda tree: tree.update_inventory(host, {pearls: {"total": 1}}),
        lambda tree: tree.add_traits(host, gold),
    )
    tampering.answer("PUT */traits", refusal(409, "too late"))
    Reporter(tampering).report(driver, live_providers.name("host"), host)
    asked = live_providers.in_words(transport.requests)
    assert asked.count("GET /resource_classes") == 1
    assert asked.count(f"GET /traits?name=in:{gold}") == 1
    assert live_providers.traits("host") == {gold}


@one_server
def test_only_new_names_are_queried(
    live_providers: LiveProviders, reporter: Reporter, transport: CountingTransport
) -> None:
    host, silver = live_providers.uuid("host"), live_providers.custom("SILVER")
    for traits in ([AVX], [AVX, silver]):
        tree = reporter.fetch(host)
        tree.update_traits(host, traits)
        transport.forget()
        reporter.flush(host, tree)
    assert live_providers.in_words(transport.requests) == [
        f"GET /traits?name=in:{silver}",
        f"PUT /traits/{silver}",
        "PUT host/traits",
    ]


@pytest.mark.parametrize(
    ("server", "allocations"),
    [("roost", None), ("roost", {}), ("reference", {})],
    indirect=["server"],
    ids=["roost", "roost-reshape", "reference-reshape"],
)
def test_the_steps_of_a_flush_have_one_order(
    live_providers: LiveProviders,
    reporter: Reporter,
    transport: CountingTransport,
    allocations: Allocations | None,
) -> None:
    host = live_providers.add("host")
    live_providers.add("old", "host")
    live_providers.add("older", "old")
    tree = reporter.fetch(host)
    tree.remove(live_providers.uuid("old"))
    tree.new_child(live_providers.name("new"), host, live_providers.uuid("new"))
    tree.new_child(
        live_providers.name("newer"), live_providers.uuid("new"), live_providers.uuid("newer")
    )
    for short in ("host", "new", "newer"):
        _change_all(tree, live_providers.uuid(short), live_providers.uuid("agg"))
    transport.forget()
    reporter.flush(host, tree, allocations)
    creations = [request for request in transport.requests if str(request) == CREATE]
    assert [live_providers.short(request.body["uuid"]) for request in creations] == ["new", "newer"]
    writes = [request for request in transport.requests if request.method != "GET"]
    # A reshape replaces the inventories.
    reshape, kinds = ["POST /reshaper"], ["aggregates", "traits"]
    if allocations is None:
        reshape, kinds = [], ["inventories", *kinds]
    assert live_providers.in_words(writes) == [
        *(CREATE, CREATE),
        *reshape,
        *("DELETE older", "DELETE old"),
        *(f"PUT {short}/{kind}" for short in ("newer", "new", "host") for kind in kinds),
    ]
    assert not live_providers.exists("old")
    # The transport may repeat creations and deletions after a lost answer.
    safe = [request.method == "DELETE" or str(request) == CREATE for request in writes]
    assert [request.repeatable for request in writes] == safe


def _change_all(tree: ProviderTree, uuid: str, aggregate: str) -> None:
    tree.update_inventory(uuid, {"VCPU": {"total": 8}})
    tree.add_aggregates(uuid, aggregate)
    tree.add_traits(uuid, AVX)


def test_each_write_to_a_provider_has_its_latest_generation(
    live_providers: LiveProviders, reporter: Reporter, transport: CountingTransport
) -> None:
    host = live_providers.add("host", totals={"VCPU": 4})
    tree = reporter.fetch(host)
    _change_all(tree, host, live_providers.uuid("agg"))
    transport.forget()
    reporter.flush(host, tree)
    writes = [request for request in transport.requests if request.method == "PUT"]
    assert live_providers.in_words(writes) == [
        "PUT host/inventories",
        "PUT host/aggregates",
        "PUT host/traits",
    ]
    assert [write.body["resource_provider_generation"] for write in writes] == [1, 2, 3]
    assert live_providers.in_words(transport.requests).index("GET host/aggregates") == (
        live_providers.in_words(transport.requests).index("PUT host/aggregates") - 1
    ), "the writer reads aggregates just before it replaces them"


@one_server
def test_a_deletion_reads_the_generation_first(
    live_providers: LiveProviders, reporter: Reporter, transport: CountingTransport
) -> None:
    host, child = live_providers.add("host"), live_providers.add("child", "host")
    tree = reporter.fetch(host)
    tree.remove(child)
    transport.forget()
    reporter.flush(host, tree)
    assert live_providers.in_words(transport.requests) == ["GET child", "DELETE child"]
    assert [request.version for request in transport.requests] == ["1.14", None]
