"""Checks of a driver against a fake server. Each raises AssertionError with what is wrong."""

from __future__ import annotations

import fnmatch
from collections import Counter, defaultdict
from collections.abc import Callable

from roost.client.drivers.driver import DeclaringDriver, Driver
from roost.client.ownership.declarative_reporter import DeclarativeReporter
from roost.client.ownership.owner_names import DEFAULT_OWNER
from roost.client.provider_tree import ProviderTree
from roost.client.reporting.reporter import Reporter
from roost.model.trees.difference import Difference
from roost.testing.drawings import drawing
from roost.testing.fake_placement import FakePlacement
from roost.testing.faults import Faults

_WITH_GENERATION = "PUT /resource_providers/*/*"
_ANY_WRITE = "P*"
AnyDriver = Driver | DeclaringDriver


def report_once(
    driver: AnyDriver, nodename: str = "host", server: FakePlacement | None = None
) -> ProviderTree:
    """Report the host once, as the agent does, and return the tree that the server then has.

    The report goes to an empty server unless one is given. A part of a declaration that cannot be
    made true is an AssertionError.
    """
    server = FakePlacement() if server is None else server
    _report(driver, nodename, server)
    return server.tree(nodename)


def assert_settles(
    driver: AnyDriver, nodename: str = "host", server: FakePlacement | None = None
) -> None:
    """Check that a second report changes nothing: otherwise the agent writes at each interval."""
    server = FakePlacement() if server is None else server
    _report(driver, nodename, server)
    again = _report(driver, nodename, server)
    if again:
        lines = "\n".join(again.lines())
        raise AssertionError(
            f"the second report of {nodename} changes what the first wrote:\n{lines}"
        )


def assert_survives_conflicts(driver: AnyDriver, nodename: str = "host") -> None:
    """Check that the tree is the same if another writer is faster at any one write."""

    def conflict(faults: Faults, number: int) -> None:
        faults.conflict(_WITH_GENERATION, after=number)

    _assert_survives(driver, nodename, _WITH_GENERATION, conflict, "a conflict")


def assert_survives_lost_answers(driver: AnyDriver, nodename: str = "host") -> None:
    """Check that the tree is the same if the answer to any one write is lost."""

    def lose(faults: Faults, number: int) -> None:
        faults.lose_answer(_ANY_WRITE, after=number)

    _assert_survives(driver, nodename, _ANY_WRITE, lose, "a lost answer")


def assert_moves_allocations(
    driver: AnyDriver, server: FakePlacement, nodename: str = "host"
) -> None:
    """Check that a report reshapes, and that each consumer holds as much of each class as before.

    The server has the old tree, and consumers that hold what has to move.
    """
    before = _amounts(server)
    _report(driver, nodename, server)
    if "POST /reshaper" not in server.writes:
        raise AssertionError(f"the report of {nodename} did not reshape")
    after = _amounts(server)
    for consumer, amounts in before.items():
        now = after.get(consumer, Counter())
        if now != amounts:
            held, holds = dict(amounts), dict(now)
            raise AssertionError(f"consumer {consumer} held {held}, and now holds {holds}")


def _assert_survives(
    driver: AnyDriver,
    nodename: str,
    pattern: str,
    disturb: Callable[[Faults, int], None],
    fault: str,
) -> None:
    """Disturb each write that matches in turn, on a server of its own."""
    undisturbed = FakePlacement()
    wanted = drawing(report_once(driver, nodename, undisturbed))
    for number, write in enumerate(fnmatch.filter(undisturbed.writes, pattern)):
        server = FakePlacement()
        disturb(server.faults, number)
        found = drawing(report_once(driver, nodename, server))
        if found != wanted:
            raise AssertionError(
                f"after {fault} at {write} the tree is\n{found}instead of\n{wanted}"
            )


def _report(driver: AnyDriver, nodename: str, server: FakePlacement) -> Difference:
    """Report with a new reporter, as after a restart of the agent."""
    reporter = Reporter(server)
    if not isinstance(driver, DeclaringDriver):
        return reporter.report(driver, nodename)
    report = DeclarativeReporter(reporter, DEFAULT_OWNER, server.records).report(driver, nodename)
    if report.kept:
        raise AssertionError("not made true: " + "; ".join(report.kept))
    return report.difference


def _amounts(server: FakePlacement) -> dict[str, Counter[str]]:
    """What each consumer holds of each class, on all providers together."""
    found: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for uuid in server.uuids().values():
        held = server.ask("GET", f"/resource_providers/{uuid}/allocations").json["allocations"]
        for consumer, amounts in held.items():
            found[consumer].update(amounts["resources"])
    return found
