"""Which provider is which: uuids of children, moves, marks, and records of former trees."""

from __future__ import annotations

import json
from contextlib import suppress
from uuid import uuid4

import pytest

from roost.client.errors import PlacementError
from roost.client.ownership.declarative_reporter import DeclarativeReporter
from roost.client.ownership.record import OwnedProvider, OwnershipRecord
from roost.client.ownership.store import InMemoryOwnershipStore
from roost.client.reporting.reporter import Reporter
from roost.client.transport import PlacementResponse
from roost.testing import FakePlacement, error_answer
from support.client.declarations import HostOwner, declaration, declared, kept_providers
from support.client.operator_edits import Operator
from support.transports.counting import CountingTransport
from support.transports.tampering import TamperingTransport, one_server

MARK = "CUSTOM_ROOST_OWNER_AGENT"


# -- uuids in a declaration


@one_server
def test_uuids_in_capitals_are_those_of_the_server(
    transport: CountingTransport, operator: Operator, host: str
) -> None:
    root, card, rack = str(uuid4()), str(uuid4()), str(uuid4())
    tree = (
        declared(host, uuid=root.upper(), aggregates=[rack.upper()]),
        declared(f"{host}_card", host, uuid=card.upper()),
    )
    owner = HostOwner(transport, host)
    owner.declare(*tree)
    assert (operator.uuid(host), operator.uuid(f"{host}_card")) == (root, card)
    again = HostOwner(transport, host, store=owner.store).declare(*tree)
    assert (again.difference.lines(), again.kept) == ([], ())


# -- uuids of children


def test_a_child_that_is_created_anew_has_the_same_uuid(
    transport: CountingTransport, operator: Operator, host: str
) -> None:
    card, chip = f"{host}_card", f"{host}_chip"
    owner = HostOwner(transport, host)
    tree = (declared(host), declared(card, host), declared(chip, card))
    owner.declare(*tree)
    before = operator.uuid(card), operator.uuid(chip)
    owner.declare(declared(host))
    assert operator.uuid(card) is None
    owner.declare(*tree)
    assert (operator.uuid(card), operator.uuid(chip)) == before
    # An operator deletes it, and the agent has lost its records.
    operator.delete(chip)
    HostOwner(transport, host).declare(*tree)
    assert (operator.uuid(card), operator.uuid(chip)) == before


@one_server
def test_children_of_one_name_below_two_hosts_differ(
    transport: CountingTransport, operator: Operator, host: str
) -> None:
    first = operator.create(host)
    second = operator.create(f"{host}-2")
    uuids = set()
    for name, uuid in ((host, first), (f"{host}-2", second)):
        owner = HostOwner(transport, name)
        owner.declare(declared(name), declared(f"{host}_card", name), uuid=uuid)
        uuids.add(operator.uuid(f"{host}_card"))
        owner.declare(declared(name))
    assert len(uuids) == 2


@one_server
def test_an_owner_does_not_take_a_child_that_another_owner_creates_at_the_same_moment(
    transport: CountingTransport, operator: Operator, host: str
) -> None:
    """Both owners find no child. The second one creates it first."""
    operator.create(host)
    card = f"{host}_card"
    second = HostOwner(transport, host, "second")
    tampering = TamperingTransport(transport)
    tampering.before("POST */resource_providers", lambda: second.declare(*tree))
    tree = (declared(host), declared(card, host))
    first = HostOwner(tampering, host, "first")
    with pytest.raises(Exception, match="name"):
        first.declare(*tree)
    first.declare(*tree)
    first.declare(declared(host))
    assert operator.tree(host)[card].traits == {"CUSTOM_ROOST_OWNER_SECOND"}


@one_server
def test_a_child_that_the_operator_renamed_is_still_the_same(
    transport: CountingTransport, operator: Operator, host: str
) -> None:
    card, chip, lab = f"{host}_card", f"{host}_chip", f"{host}_lab"
    owner = HostOwner(transport, host)
    owner.declare(declared(host), declared(card, host))
    uuid = operator.uuid(card)
    operator.api.put(f"/resource_providers/{uuid}", {"name": lab})
    report = HostOwner(transport, host, store=owner.store).declare(
        declared(host),
        declared(card, host, inventories={"CUSTOM_CARD": {"total": 1}}),
        declared(chip, card),
    )
    assert kept_providers(report) == [lab]
    assert operator.uuid(lab) == uuid
    assert operator.tree(host)[chip].parent == lab
    assert operator.inventories(lab)["CUSTOM_CARD"]["total"] == 1


# -- moves


def test_a_card_whose_numa_node_changes_is_moved_with_all_below_it(
    transport: CountingTransport, operator: Operator, host: str
) -> None:
    nodes = [declared(f"{host}_numa{number}", host) for number in (0, 1)]
    card, port = f"{host}_card", f"{host}_port"
    owner = HostOwner(transport, host)

    def on(node: str) -> list[str]:
        below = (declared(card, node, inventories={"CUSTOM_CARD": {"total": 1}}),)
        report = owner.declare(declared(host), *nodes, *below, declared(port, card))
        assert not report.kept
        return report.difference.lines()

    on(f"{host}_numa0")
    before = operator.uuid(card), operator.uuid(port)
    operator.add_traits(card, "CUSTOM_RESERVED_FOR_LAB")
    consumer = operator.claim(card, "CUSTOM_CARD")
    owner_again = HostOwner(transport, host, store=owner.store)
    owner = owner_again
    assert on(f"{host}_numa1") == [f"{card}: moved below {host}_numa1"]
    tree = operator.tree(host)
    assert (tree[card].parent, tree[port].parent) == (f"{host}_numa1", card)
    assert tree[card].traits == {MARK, "CUSTOM_RESERVED_FOR_LAB"}
    assert (operator.uuid(card), operator.uuid(port)) == before
    assert on(f"{host}_numa1") == []
    operator.release(consumer)


def test_the_node_that_a_card_leaves_can_go_and_a_new_one_can_come(
    transport: CountingTransport, operator: Operator, host: str
) -> None:
    owner = HostOwner(transport, host)
    for node in (f"{host}_numa0", f"{host}_numa1"):
        owner.declare(declared(host), declared(node, host), declared(f"{host}_card", node))
        assert operator.names(host) == {host, node, f"{host}_card"}
        assert operator.tree(host)[f"{host}_card"].parent == node


@one_server
def test_two_cards_can_exchange_their_places(
    transport: CountingTransport, operator: Operator, host: str
) -> None:
    upper, lower = f"{host}_a", f"{host}_b"
    owner = HostOwner(transport, host)
    for _ in range(3):
        owner.declare(declared(host), declared(upper, host), declared(lower, upper))
        assert operator.tree(host)[lower].parent == upper
        upper, lower = lower, upper


@one_server
def test_a_card_of_another_writer_is_not_moved(
    transport: CountingTransport, operator: Operator, host: str
) -> None:
    operator.create(host)
    operator.create(f"{host}_numa0", host)
    operator.create(f"{host}_card", f"{host}_numa0")
    owner = HostOwner(transport, host)
    report = owner.declare(declared(host), declared(f"{host}_card", host))
    assert kept_providers(report) == [f"{host}_card"]
    assert operator.tree(host)[f"{host}_card"].parent == f"{host}_numa0"


@one_server
def test_an_old_server_leaves_a_card_where_it_is(
    transport: CountingTransport, operator: Operator, host: str
) -> None:
    tampering = TamperingTransport(transport)
    owner = HostOwner(tampering, host)
    nodes = [declared(f"{host}_numa{number}", host) for number in (0, 1)]
    owner.declare(declared(host), *nodes, declared(f"{host}_card", f"{host}_numa0"))
    versions = {"versions": [{"id": "v1.0", "max_version": "1.36", "min_version": "1.0"}]}
    tampering.answer("GET /", PlacementResponse(200, {}, json.dumps(versions).encode()))
    report = owner.declare(declared(host), *nodes, declared(f"{host}_card", f"{host}_numa1"))
    assert report.difference.lines() == []
    assert "1.37" in report.kept[0]


@one_server
def test_a_move_undoes_no_move_and_no_new_name_of_another_writer(
    transport: CountingTransport, operator: Operator, host: str
) -> None:
    card, lab = f"{host}_card", f"{host}_lab"
    tampering = TamperingTransport(transport)
    owner = HostOwner(tampering, host)
    nodes = [declared(f"{host}_numa{number}", host) for number in (0, 1)]
    owner.declare(declared(host), *nodes, declared(card, f"{host}_numa0"))
    uuid = operator.uuid(card)
    tampering.before(
        f"GET /resource_providers/{uuid}",
        lambda: operator.api.put(f"/resource_providers/{uuid}", {"name": lab}),
    )
    report = owner.declare(declared(host), *nodes, declared(card, f"{host}_numa1"))
    assert operator.uuid(lab) == uuid
    assert operator.tree(host)[lab].parent == f"{host}_numa1"
    assert kept_providers(report) == [lab]


# -- marks


def test_a_provider_with_the_older_mark_of_an_operator_stays(
    transport: CountingTransport, operator: Operator, host: str
) -> None:
    """The owner has no record, and the operator's own trait looks as marks did once."""
    operator.create(host)
    operator.create(f"{host}_lab", host)
    operator.add_traits(f"{host}_lab", "CUSTOM_OWNER_AGENT")
    before = operator.tree(host)
    HostOwner(transport, host).declare(declared(host))
    assert operator.tree(host) == before


@one_server
def test_recorded_providers_with_an_older_mark_get_the_new_one(
    transport: CountingTransport, operator: Operator, host: str
) -> None:
    root = operator.create(host)
    card = operator.create(f"{host}_card", host)
    operator.add_traits(f"{host}_card", "CUSTOM_OWNER_AGENT", "CUSTOM_BY_HAND")
    old = OwnedProvider(f"{host}_card", created=True, traits=frozenset({"CUSTOM_OWNER_AGENT"}))
    store = InMemoryOwnershipStore()
    store.save(root, OwnershipRecord({card: old}))
    owner = HostOwner(transport, host, store=store)
    owner.declare(declared(host), declared(f"{host}_card", host))
    assert operator.tree(host)[f"{host}_card"].traits == {MARK, "CUSTOM_BY_HAND"}
    assert operator.uuid(f"{host}_card") == card
    owner.declare(declared(host))
    assert operator.names(host) == {host}


# -- trees that became one


@one_server
def test_the_records_of_two_trees_that_became_one_are_merged(
    transport: CountingTransport, operator: Operator, host: str
) -> None:
    """The owner has a record of the rack, and one of the host that is put below the rack."""
    rack = f"rack-{uuid4()}"
    root, member = operator.create(rack), operator.create(host)
    store = InMemoryOwnershipStore()

    def declare(name: str, uuid: str, *children: str) -> None:
        wanted = (declared(name), *(declared(child, name) for child in children))
        reporter = DeclarativeReporter(Reporter(transport), "agent", store)
        reporter.declare(declaration(*wanted), name, uuid)

    declare(rack, root, f"{rack}_pdu")
    declare(host, member, f"{host}_card")
    operator.api.put(f"/resource_providers/{member}", {"name": host, "parent_provider_uuid": root})
    reporter = DeclarativeReporter(Reporter(transport), "agent", store)
    both = (
        declared(rack),
        declared(f"{rack}_pdu", rack),
        declared(host, rack),
        declared(f"{host}_card", host),
    )
    reporter.declare(declaration(*both), rack, root)
    assert store.trees() == [root]
    reporter.declare(declaration(declared(rack), declared(host, rack)), rack, root)
    assert operator.names(rack) == {rack, host}


# -- creations of unknown outcome


@pytest.mark.parametrize("refused", [None, error_answer(401)], ids=["down", "refused"])
def test_a_creation_that_cannot_be_looked_up_stays_in_the_record(
    refused: PlacementResponse | None,
) -> None:
    """The answer is lost, the repeat conflicts, and then the server does not show the provider."""
    server = FakePlacement()
    server.add_provider("host")
    store = InMemoryOwnershipStore()
    server.faults.lose_answer("POST /resource_providers")
    look_up = f"GET /resource_providers/{'?' * 36}"
    if refused is None:
        server.faults.unreachable(look_up, times=4)
    else:
        server.faults.answer(look_up, refused)
    with suppress(PlacementError):
        HostOwner(server, "host", store=store).declare(
            declared("host"), declared("host_card", "host")
        )
    assert server.faults.left == []
    HostOwner(server, "host", store=store).declare(declared("host"))
    with pytest.raises(LookupError):
        server.uuid("host_card")
