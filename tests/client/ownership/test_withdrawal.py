"""What a driver no longer finds: unreadable, missing for a moment, missing for good."""

from __future__ import annotations

from itertools import count

import pytest

from roost.client.errors import SuddenLoss
from roost.client.ownership.declarative_reporter import DeclarativeReporter, Report
from roost.client.ownership.store import InMemoryOwnershipStore, OwnershipStore
from roost.client.reporting.reporter import Reporter
from roost.client.transport import Transport
from roost.model.trees.declaration import DeclaredProvider, UnreadProviders
from support.client.declarations import FindingDriver, declared, kept_providers
from support.client.operator_edits import Operator
from support.transports.counting import CountingTransport
from support.transports.tampering import TamperingTransport, one_server, refusal

MINUTE = 60.0


class Host:
    """A host with some cards, which one agent reports every minute."""

    def __init__(self, transport: Transport, name: str, cards: int = 3) -> None:
        self.name = name
        self.transport = transport
        self.store: OwnershipStore = InMemoryOwnershipStore()
        self.cards = [f"{name}_card{number}" for number in range(cards)]
        self.driver = FindingDriver()
        self.now = 1_000_000.0
        self.find(*self.cards)
        self.start()

    def start(self, *, accept_loss: bool = False) -> None:
        """Begin as a process that knows nothing but the records."""
        self.reporter = DeclarativeReporter(
            Reporter(self.transport),
            "agent",
            self.store,
            accept_loss=accept_loss,
            clock=lambda: self.now,
        )

    def find(self, *cards: str) -> None:
        """Have the driver find the host and these cards."""
        self.driver.found = (declared(self.name), *(self._card(card) for card in cards))

    def _card(self, card: str) -> DeclaredProvider:
        return declared(card, self.name, inventories={"CUSTOM_CARD": {"total": 1}})

    def report(self) -> Report:
        self.now += MINUTE
        return self.reporter.report(self.driver, self.name)

    def reports_until_gone(self, operator: Operator, card: str) -> int:
        for number in count(1):
            self.report()
            if operator.uuid(card) is None:
                return number
            assert number < 20
        raise AssertionError("the loop ends")


@pytest.fixture
def machine(transport: CountingTransport, host: str) -> Host:
    found = Host(transport, host)
    found.report()
    return found


def test_a_card_that_is_gone_for_good_is_withdrawn_after_three_reports_and_five_minutes(
    machine: Host, operator: Operator
) -> None:
    first, second, third = machine.cards
    machine.find(first, second)
    report = machine.report()
    assert kept_providers(report) == [third]
    # Reports come every minute, so five minutes are over with the sixth.
    assert 1 + machine.reports_until_gone(operator, third) == 6
    assert operator.names(machine.name) == {machine.name, first, second}


def test_a_card_is_withdrawn_after_three_reports_though_these_are_far_apart(
    machine: Host, operator: Operator
) -> None:
    first, second, third = machine.cards
    machine.find(first, second)
    for _ in range(2):
        machine.now += 24 * 60 * MINUTE
        machine.report()
        assert operator.uuid(third) is not None
    machine.now += 24 * 60 * MINUTE
    machine.report()
    assert operator.uuid(third) is None


@one_server
def test_the_absence_of_a_card_is_counted_across_restarts(
    machine: Host, operator: Operator
) -> None:
    first, second, third = machine.cards
    machine.find(first, second)
    for _ in range(6):
        assert operator.uuid(third) is not None
        machine.start()
        machine.report()
    assert operator.uuid(third) is None


def test_a_card_that_comes_back_is_the_same_provider_with_the_operators_traits(
    machine: Host, operator: Operator
) -> None:
    first, second, third = machine.cards
    operator.add_traits(third, "CUSTOM_RESERVED_FOR_LAB")
    before = operator.tree(machine.name), operator.uuid(third)
    machine.find(first, second)
    for _ in range(5):
        machine.report()
    machine.find(*machine.cards)
    assert not machine.report().kept
    assert (operator.tree(machine.name), operator.uuid(third)) == before
    # The absence is forgotten: the card has five more minutes.
    machine.find(first, second)
    machine.report()
    assert operator.uuid(third) is not None


@one_server
def test_the_attempts_of_one_report_count_as_one(
    transport: CountingTransport, host: str, operator: Operator
) -> None:
    tampering = TamperingTransport(transport)
    machine = Host(tampering, host)
    machine.report()
    third = machine.cards[2]
    machine.driver.found = (
        declared(host, traits=["CUSTOM_COMES_LATER"]),
        *machine.driver.found[1:3],
    )
    # Three of the four attempts meet a conflict.
    conflict = refusal(409, code="placement.concurrent_update")
    tampering.answer("PUT */traits", conflict, times=3)
    machine.now += 10 * MINUTE
    machine.report()
    assert not tampering.left
    machine.now += 10 * MINUTE
    machine.report()
    assert operator.uuid(third) is not None
    machine.now += 10 * MINUTE
    machine.report()
    assert operator.uuid(third) is None


def test_a_card_that_cannot_be_read_stays_as_it_is(machine: Host, operator: Operator) -> None:
    first, second, third = machine.cards
    operator.add_traits(third, "CUSTOM_RESERVED_FOR_LAB")
    before = operator.tree(machine.name)
    machine.find(first, second)
    for unread in (
        UnreadProviders(names=frozenset({third})),
        UnreadProviders(prefixes=frozenset({f"{machine.name}_"})),
    ):
        machine.driver.unread = unread
        for _ in range(10):
            assert kept_providers(machine.report()) == [third]
    assert operator.tree(machine.name) == before


def test_a_driver_that_suddenly_finds_less_than_half_reports_nothing(
    machine: Host, operator: Operator
) -> None:
    before = operator.tree(machine.name)
    machine.find()
    for _ in range(10):
        machine.start()
        with pytest.raises(SuddenLoss, match=r"finds 1 of the 4 .*--accept-loss"):
            machine.report()
    assert operator.tree(machine.name) == before
    machine.start(accept_loss=True)
    machine.report()
    assert operator.names(machine.name) == {machine.name}
    machine.start()
    assert not machine.report().kept


def test_a_loss_in_small_steps_is_no_sudden_loss(machine: Host, operator: Operator) -> None:
    first, second, _ = machine.cards
    machine.find(first, second)
    machine.report()
    machine.find(first)
    machine.report()
    machine.find()
    machine.report()
    for _ in range(8):
        machine.report()
    assert operator.names(machine.name) == {machine.name}


def test_a_missing_card_that_is_in_use_stays(machine: Host, operator: Operator) -> None:
    first, second, third = machine.cards
    consumer = operator.claim(third, "CUSTOM_CARD")
    machine.find(first, second)
    for _ in range(8):
        machine.report()
    assert operator.uuid(third) is not None
    operator.release(consumer)
    machine.report()
    assert operator.uuid(third) is None


@one_server
def test_what_an_operator_no_longer_declares_is_withdrawn_at_once(
    machine: Host, operator: Operator
) -> None:
    machine.driver.declares_intent = True
    machine.find()
    machine.report()
    assert operator.names(machine.name) == {machine.name}


@one_server
@pytest.mark.parametrize("jump", [1_000_000.0, -1_000_000.0])
def test_a_clock_that_is_set_neither_hurries_nor_stops_a_withdrawal(
    transport: CountingTransport, operator: Operator, host: str, jump: float
) -> None:
    machine = Host(transport, host)
    machine.report()
    machine.find(*machine.cards[1:])
    for _ in range(2):
        machine.report()
    machine.now += jump
    # A card that is missing for two minutes has some more.
    machine.report()
    assert operator.uuid(machine.cards[0]) is not None
    assert machine.reports_until_gone(operator, machine.cards[0]) <= 5


@one_server
def test_a_preview_counts_no_absence(machine: Host, operator: Operator) -> None:
    first, second, third = machine.cards
    machine.find(first, second)
    machine.now += 60 * MINUTE
    for _ in range(5):
        machine.now += MINUTE
        preview = machine.reporter.preview_report(machine.driver, machine.name)
        assert (kept_providers(preview), preview.difference.lines()) == ([third], [])
    machine.report()
    assert operator.uuid(third) is not None
