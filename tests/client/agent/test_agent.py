"""The loop of the agent, with a clock that moves only while the agent waits."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from roost.client.agent.agent import Agent, SignalWaker
from roost.client.drivers.file import FileDriver
from roost.client.errors import PlacementError, ResourceProviderCreationFailed
from roost.client.ownership.declarative_reporter import DeclarativeReporter, Report
from roost.client.ownership.store import InMemoryOwnershipStore
from roost.client.reporting.reporter import Reporter
from roost.model.errors import OperatorError
from roost.model.identifiers import new_uuid
from roost.model.trees.difference import Difference, ProviderCreation
from roost.systemd import SystemdNotifier
from support.client.live_providers import LiveProviders
from support.transports.counting import CountingTransport
from support.transports.tampering import one_server

NOTHING = Report(Difference())
Step = Report | Exception | Callable[[], Report]
Tell = Callable[[object], None]


class Clock(SignalWaker):
    """A clock and a waker in one: each wait moves the time forward."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0
        self.waits: list[float] = []
        self.during_wait: Callable[[], object] = lambda: None
        """Is called at the beginning of each wait."""

    def wait(self, seconds: float) -> bool:
        self.during_wait()
        if super().wait(0):
            return True
        self.waits.append(seconds)
        self.now += seconds
        return False


class RecordingNotifier(SystemdNotifier):
    """Keeps the states instead of sending them."""

    def __init__(self, watchdog_seconds: float | None = None) -> None:
        super().__init__({})
        self.watchdog_seconds = watchdog_seconds
        self.states: list[str] = []
        self.watchdog_resets = 0

    def ready(self) -> None:
        self.states.append("ready")

    def status(self, text: str) -> None:
        self.states.append(text)

    def alive(self) -> None:
        self.watchdog_resets += 1

    def stopping(self) -> None:
        self.states.append("stopping")


class ScriptedAgent:
    """An agent whose reports follow the steps of a script; it stops after the last step.

    `tell` replaces the callbacks that keep the agent's events.
    """

    def __init__(
        self,
        *steps: Step,
        interval: float = 60,
        watchdog_seconds: float | None = None,
        tell: Tell | None = None,
    ) -> None:
        self.clock = Clock()
        self.notifier = RecordingNotifier(watchdog_seconds)
        self.began: list[float] = []
        self.changed: list[Report] = []
        self.failed: list[str] = []
        self.recovered: list[str] = []
        self._steps = list(steps)
        self.agent = Agent(
            self._report,
            interval=interval,
            changed=tell or self.changed.append,
            failed=tell or self.failed.append,
            recovered=tell or self.recovered.append,
            notifier=self.notifier,
            waker=self.clock,
            clock=lambda: self.clock.now,
        )

    def _report(self) -> Report:
        self.began.append(self.clock.now)
        step = self._steps.pop(0)
        if not self._steps:
            self.agent.stop()
        if isinstance(step, Exception):
            raise step
        return step if isinstance(step, Report) else step()

    def run(self) -> None:
        try:
            self.agent.run()
        finally:
            self.agent.close()

    @property
    def pauses(self) -> list[float]:
        """The time between the beginnings of two reports."""
        return [later - sooner for sooner, later in zip(self.began, self.began[1:], strict=False)]


def run(*steps: Step, interval: float = 60, watchdog_seconds: float | None = None) -> ScriptedAgent:
    """An agent that has run to the end of its script."""
    script = ScriptedAgent(*steps, interval=interval, watchdog_seconds=watchdog_seconds)
    script.run()
    return script


def change(name: str) -> Report:
    return Report(Difference(creations=(ProviderCreation(new_uuid(), name, None, None),)))


# -- the interval


def test_reports_follow_the_interval_with_jitter() -> None:
    script = run(*[NOTHING] * 30, interval=60)
    assert len(script.began) == 30
    assert all(54 <= pause <= 66 for pause in script.pauses)
    assert len(set(script.pauses)) > 20


def test_systemd_gets_the_states_of_the_agent() -> None:
    script = run(change("host"), NOTHING, OperatorError("no room at all"))
    assert script.notifier.states == [
        "ready",
        "reported, 1 change",
        "reported, 0 changes",
        "report failed: no room at all",
        "stopping",
    ]


def test_the_agent_is_ready_before_the_first_report() -> None:
    seen: list[str] = []

    def look() -> Report:
        seen.extend(script.notifier.states)
        return NOTHING

    script = ScriptedAgent(look)
    script.run()
    assert seen == ["ready"]


def test_a_waiting_agent_resets_the_watchdog_twice_in_its_interval() -> None:
    script = run(NOTHING, NOTHING, interval=60, watchdog_seconds=10)
    assert max(script.clock.waits) <= 5
    assert 54 <= sum(script.clock.waits) <= 66
    assert script.notifier.watchdog_resets >= len(script.clock.waits)


# -- failures


def test_the_wait_after_a_failure_doubles_up_to_the_interval() -> None:
    script = run(*[OperatorError("down")] * 12, interval=60)
    bounds = [1, 2, 4, 8, 16, 32, 60, 60, 60, 60, 60]
    assert all(
        bound / 2 <= pause <= bound for pause, bound in zip(script.pauses, bounds, strict=True)
    )


def test_the_wait_after_a_failure_is_random() -> None:
    pauses = {run(OperatorError("down"), NOTHING).pauses[0] for _ in range(10)}
    assert len(pauses) > 5


def test_thousands_of_failures_do_not_shorten_the_wait() -> None:
    script = run(*[OperatorError("down")] * 2000, interval=1)
    assert all(0.5 <= pause <= 1 for pause in script.pauses)


def test_a_success_resets_the_wait() -> None:
    down = OperatorError("down")
    script = run(*[down] * 8, NOTHING, down, NOTHING)
    assert script.pauses[-1] <= 1


def test_a_repeated_failure_is_told_once_and_its_end_once() -> None:
    script = run(*[OperatorError("no connection")] * 5, NOTHING, NOTHING)
    (failed,), (recovered,) = script.failed, script.recovered
    assert "no connection" in failed
    assert "5 failed attempts" in recovered


def test_a_failure_after_a_success_is_told_again() -> None:
    down = OperatorError("no connection")
    script = run(down, NOTHING, down, NOTHING)
    assert len(script.failed) == 2
    assert len(script.recovered) == 2


def test_a_different_failure_is_told() -> None:
    script = run(
        PlacementError("Cannot create host", detail="the name is taken"),
        PlacementError("Cannot create host", detail="the disk is full"),
        OperatorError("no connection"),
    )
    details = ["the name is taken", "the disk is full", "no connection"]
    assert [detail in line for detail, line in zip(details, script.failed, strict=True)] == [
        True
    ] * 3


def test_failures_that_differ_only_in_ids_are_told_once() -> None:
    failures = [
        ResourceProviderCreationFailed(
            f"Cannot create provider host_gpu ({new_uuid()})",
            status=409,
            detail="Conflicting resource provider name",
            request_id=f"req-{new_uuid()}",
        )
        for _ in range(4)
    ]
    script = run(*failures)
    (line,) = script.failed
    assert str(failures[0]) in line


def test_a_failure_that_lasts_is_told_every_ten_minutes() -> None:
    script = run(*[OperatorError("no connection")] * 200, interval=60)
    hours = (script.began[-1] - script.began[0]) / 3600
    assert 5 * hours <= len(script.failed) <= 6 * hours + 1


def test_any_exception_of_a_driver_is_a_failed_report(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        script = run(KeyError("numa0"), KeyError("numa0"), ZeroDivisionError("by zero"), NOTHING)
    assert len(script.began) == 4
    first, second = script.failed
    assert "KeyError: 'numa0'" in first
    assert "ZeroDivisionError: by zero" in second
    # The author of the driver needs the traceback.
    assert [type(error) for error in errors(caplog)] == [KeyError, ZeroDivisionError]


def test_an_error_that_an_operator_can_mend_has_no_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    run(OperatorError("the file is empty"))
    assert errors(caplog) == []


def errors(caplog: pytest.LogCaptureFixture) -> list[BaseException | None]:
    return [record.exc_info[1] for record in caplog.records if record.exc_info]


# -- events of reports


def test_each_change_is_told_once() -> None:
    first, second = change("host"), change("host_gpu")
    script = run(first, NOTHING, NOTHING, second, NOTHING)
    assert script.changed == [first, second]


def test_kept_resources_are_told_when_they_change() -> None:
    one = Report(Difference(), ("gpu0: not deleted, it is in use",))
    two = Report(Difference(), (*one.kept, "gpu1: not deleted, it is in use"))
    script = run(NOTHING, one, one, OperatorError("down"), one, two, two, NOTHING, NOTHING)
    assert script.changed == [one, two, NOTHING]


# -- stopping and waking the agent


def test_a_stopped_agent_ends_after_the_report_under_way() -> None:
    last = change("host")
    script = run(NOTHING, last)
    assert script.changed == [last]
    assert script.notifier.states[-2:] == ["reported, 1 change", "stopping"]
    # The agent did not wait for another interval.
    assert script.clock.now == script.began[-1]


def test_an_agent_that_is_stopped_during_a_failing_report_ends() -> None:
    script = run(OperatorError("down"))
    assert script.notifier.states[-1] == "stopping"
    assert script.clock.waits == []


def test_a_wake_during_a_report_skips_one_wait() -> None:
    def wake() -> Report:
        script.agent.report_now()
        return NOTHING

    script = ScriptedAgent(NOTHING, wake, NOTHING, NOTHING)
    script.run()
    assert script.pauses[1] == 0
    assert script.pauses[2] >= 54


def test_a_wake_during_a_wait_ends_the_wait() -> None:
    script = ScriptedAgent(NOTHING, NOTHING, interval=60, watchdog_seconds=10)

    def report_after_15_seconds() -> None:
        if script.clock.now == script.began[0] + 15:
            script.agent.report_now()

    script.clock.during_wait = report_after_15_seconds
    script.run()
    assert script.pauses == [15]


def test_an_agent_that_is_stopped_during_a_wait_ends() -> None:
    script = ScriptedAgent(NOTHING, NOTHING)
    script.clock.during_wait = script.agent.stop
    script.run()
    assert len(script.began) == 1
    assert script.clock.waits == []
    assert script.notifier.states[-1] == "stopping"


# -- a host described by a file


@one_server
def test_a_broken_file_leaves_what_was_reported(
    transport: CountingTransport, tmp_path: Path
) -> None:
    live_providers = LiveProviders(transport)
    host = live_providers.name("host")
    path = tmp_path / "tree.yaml"
    reporter = DeclarativeReporter(Reporter(transport), "agent", InMemoryOwnershipStore())
    driver = FileDriver(str(path))

    def with_file(text: str) -> Callable[[], Report]:
        def report() -> Report:
            path.write_text(text)
            return reporter.report(driver, host, live_providers.uuid("host"))

        return report

    def good(total: int) -> Callable[[], Report]:
        return with_file(f"providers: [{{name: {host}, inventories: {{VCPU: {total}}}}}]")

    def still_there() -> Report:
        assert live_providers.totals("host") == {"VCPU": 8}
        return NOTHING

    script = run(good(8), with_file("providers: [{name: "), still_there, with_file(""), good(9))

    assert live_providers.totals("host") == {"VCPU": 9}
    assert [report.difference.lines() for report in script.changed] == [
        [
            f"{host}: created",
            f"{host}: inventory VCPU added (total 8)",
            f"{host}: traits added: CUSTOM_ROOST_OWNER_AGENT",
        ],
        [f"{host}: inventory VCPU total 8 -> 9"],
    ]
    assert [f"{path}:1:" in line for line in script.failed] == [True, True]
    assert len(script.recovered) == 2


def test_the_agent_goes_on_if_its_events_cannot_be_told(caplog: pytest.LogCaptureFixture) -> None:
    def fail(_: object) -> None:
        raise OSError("No space left on device")

    script = ScriptedAgent(change("a"), OperatorError("no"), change("b"), NOTHING, tell=fail)
    script.run()
    assert len(script.began) == 4
    assert [record.getMessage() for record in caplog.records] == [
        "The agent cannot print an event: No space left on device"
    ] * 4
    assert errors(caplog) == []
