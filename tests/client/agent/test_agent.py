"""The loop of the agent, with time that passes only while it waits."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from roost.client.agent.agent import Agent
from roost.client.agent.alarm import Alarm
from roost.client.agent.notifying import Notifier
from roost.client.drivers.file import FileDriver
from roost.client.errors import PlacementError, ResourceProviderCreationFailed
from roost.client.owning.owner import Owner, Report
from roost.client.owning.records import MemoryRecords
from roost.client.reporting.difference import Creation, Difference
from roost.client.reporting.reporter import Reporter
from roost.model.errors import OperatorError
from roost.model.identifiers import new_uuid
from support.counting import CountingTransport
from support.remote_world import RemoteWorld
from support.tampering import one_server

NOTHING = Report(Difference())
Step = Report | Exception | Callable[[], Report]


class Time(Alarm):
    """A clock and an alarm in one: who waits for it makes the time pass."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0
        self.waits: list[float] = []
        self.meanwhile: Callable[[], object] = lambda: None
        """What happens while somebody waits."""

    def wait(self, seconds: float) -> bool:
        self.meanwhile()
        if super().wait(0):
            return True
        self.waits.append(seconds)
        self.now += seconds
        return False


class Manager(Notifier):
    """A notifier that remembers what it was told."""

    def __init__(self, watchdog_seconds: float | None = None) -> None:
        super().__init__({})
        self.watchdog_seconds = watchdog_seconds
        self.heard: list[str] = []

    def _send(self, state: str) -> None:
        self.heard.append(state)


class Play:
    """An agent whose reports come out as the steps say, one after the other; then it stops."""

    def __init__(
        self, *steps: Step, interval: float = 60, watchdog_seconds: float | None = None
    ) -> None:
        self.time = Time()
        self.manager = Manager(watchdog_seconds)
        self.began: list[float] = []
        self.changed: list[Report] = []
        self.failed: list[str] = []
        self.recovered: list[str] = []
        self._steps = list(steps)
        self.agent = Agent(
            self._report,
            interval=interval,
            changed=self.changed.append,
            failed=self.failed.append,
            recovered=self.recovered.append,
            notifier=self.manager,
            alarm=self.time,
            clock=lambda: self.time.now,
        )

    def _report(self) -> Report:
        self.began.append(self.time.now)
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

    @property
    def states(self) -> list[str]:
        """What the manager heard, but for the signs of life."""
        return [state for state in self.manager.heard if state != "WATCHDOG=1"]


def played(*steps: Step, interval: float = 60, watchdog_seconds: float | None = None) -> Play:
    """A play that has come to its end."""
    play = Play(*steps, interval=interval, watchdog_seconds=watchdog_seconds)
    play.run()
    return play


def change(name: str) -> Report:
    return Report(Difference(creations=(Creation(new_uuid(), name, None, None),)))


# -- the interval


def test_it_reports_at_the_interval_but_hosts_drift_apart() -> None:
    play = played(*[NOTHING] * 30, interval=60)
    assert len(play.began) == 30
    assert all(54 <= pause <= 66 for pause in play.pauses)
    assert len(set(play.pauses)) > 20


def test_the_manager_hears_that_it_is_ready_and_what_it_does() -> None:
    play = played(change("host"), NOTHING, OperatorError("no room\nat all"))
    assert play.states == [
        "READY=1",
        "STATUS=reported, 1 change",
        "STATUS=reported, 0 changes",
        "STATUS=report failed: no room",
        "STOPPING=1",
    ]


def test_it_is_ready_before_the_first_report() -> None:
    seen: list[str] = []

    def look() -> Report:
        seen.extend(play.manager.heard)
        return NOTHING

    play = Play(look)
    play.run()
    assert seen == ["READY=1"]


def test_it_gives_signs_of_life_twice_as_often_as_the_manager_wants() -> None:
    play = played(NOTHING, NOTHING, interval=60, watchdog_seconds=10)
    assert max(play.time.waits) <= 5
    assert 54 <= sum(play.time.waits) <= 66
    assert play.manager.heard.count("WATCHDOG=1") >= len(play.time.waits)


# -- failures


def test_after_failures_it_grows_patient_up_to_the_interval() -> None:
    play = played(*[OperatorError("down")] * 12, interval=60)
    bounds = [1, 2, 4, 8, 16, 32, 60, 60, 60, 60, 60]
    assert all(
        bound / 2 <= pause <= bound for pause, bound in zip(play.pauses, bounds, strict=True)
    )


def test_hosts_that_failed_together_do_not_come_back_together() -> None:
    pauses = {played(OperatorError("down"), NOTHING).pauses[0] for _ in range(10)}
    assert len(pauses) > 5


def test_it_never_hurries_however_short_the_interval_and_long_the_failure() -> None:
    play = played(*[OperatorError("down")] * 2000, interval=1)
    assert all(0.5 <= pause <= 1 for pause in play.pauses)


def test_once_it_works_it_is_as_impatient_as_before() -> None:
    down = OperatorError("down")
    play = played(*[down] * 8, NOTHING, down, NOTHING)
    assert play.pauses[-1] <= 1


def test_a_failure_that_goes_on_is_one_line_and_its_end_another() -> None:
    play = played(*[OperatorError("no connection")] * 5, NOTHING, NOTHING)
    (line,) = play.failed
    assert line == "report failed: no connection; trying again in 1 s"
    assert play.recovered == ["reporting again after 5 failed attempts"]


def test_a_failure_that_comes_back_is_told_again() -> None:
    down = OperatorError("no connection")
    play = played(down, NOTHING, down, NOTHING)
    assert len(play.failed) == 2
    assert play.recovered == ["reporting again after 1 failed attempt"] * 2


def test_another_failure_is_told() -> None:
    play = played(
        PlacementError("Cannot create host", detail="the name is taken"),
        PlacementError("Cannot create host", detail="the disk is full"),
        OperatorError("no connection"),
    )
    assert [line.partition(";")[0] for line in play.failed] == [
        "report failed: Cannot create host: the name is taken",
        "report failed: Cannot create host: the disk is full",
        "report failed: no connection",
    ]


def test_a_failure_is_the_same_if_only_ids_differ() -> None:
    failures = [
        ResourceProviderCreationFailed(
            f"Cannot create provider host_gpu ({new_uuid()})",
            status=409,
            detail="Conflicting resource provider name",
            request_id=f"req-{new_uuid()}",
        )
        for _ in range(4)
    ]
    play = played(*failures)
    (line,) = play.failed
    assert str(failures[0]) in line


def test_a_failure_that_goes_on_for_long_is_told_again_now_and_then() -> None:
    play = played(*[OperatorError("no connection")] * 200, interval=60)
    hours = (play.began[-1] - play.began[0]) / 3600
    assert 5 * hours <= len(play.failed) <= 6 * hours + 1


def test_a_driver_may_raise_whatever_it_likes(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        play = played(KeyError("numa0"), KeyError("numa0"), ZeroDivisionError("by zero"), NOTHING)
    assert len(play.began) == 4
    assert [line.partition(";")[0] for line in play.failed] == [
        "report failed: KeyError: 'numa0'",
        "report failed: ZeroDivisionError: by zero",
    ]
    # Whoever wrote the driver wants to know where; an operator's error is nobody's bug.
    assert [type(error) for error in errors(caplog)] == [KeyError, ZeroDivisionError]


def test_what_an_operator_can_mend_has_no_traceback(caplog: pytest.LogCaptureFixture) -> None:
    played(OperatorError("the file is empty"))
    assert errors(caplog) == []


def errors(caplog: pytest.LogCaptureFixture) -> list[BaseException | None]:
    return [record.exc_info[1] for record in caplog.records if record.exc_info]


# -- what is told of reports


def test_each_change_is_told_once() -> None:
    first, second = change("host"), change("host_gpu")
    play = played(first, NOTHING, NOTHING, second, NOTHING)
    assert play.changed == [first, second]


def test_what_is_kept_is_told_when_that_changes_and_not_each_minute() -> None:
    one = Report(Difference(), ("gpu0: not deleted, it is in use",))
    two = Report(Difference(), (*one.kept, "gpu1: not deleted, it is in use"))
    play = played(NOTHING, one, one, OperatorError("down"), one, two, two, NOTHING, NOTHING)
    assert play.changed == [one, two, NOTHING]


# -- being told to stop, or to hurry


def test_told_to_stop_it_ends_after_the_report_under_way() -> None:
    last = change("host")
    play = played(NOTHING, last)
    assert play.changed == [last]
    assert play.states[-2:] == ["STATUS=reported, 1 change", "STOPPING=1"]
    # It did not wait for another interval.
    assert play.time.now == play.began[-1]


def test_told_to_stop_while_a_report_fails_it_ends() -> None:
    play = played(OperatorError("down"))
    assert play.states[-1] == "STOPPING=1"
    assert play.time.waits == []


def test_told_to_report_it_does_not_wait() -> None:
    def hurry() -> Report:
        play.agent.report_now()
        return NOTHING

    play = Play(NOTHING, hurry, NOTHING, NOTHING)
    play.run()
    assert play.pauses[1] == 0
    # Once is once.
    assert play.pauses[2] >= 54


def test_told_to_report_while_it_waits_it_wakes_up() -> None:
    play = Play(NOTHING, NOTHING, interval=60, watchdog_seconds=10)

    def meanwhile() -> None:
        if play.time.now == play.began[0] + 15:
            play.agent.report_now()

    play.time.meanwhile = meanwhile
    play.run()
    assert play.pauses == [15]


def test_told_to_stop_while_it_waits_it_ends() -> None:
    play = Play(NOTHING, NOTHING)
    play.time.meanwhile = play.agent.stop
    play.run()
    assert len(play.began) == 1
    assert play.time.waits == []
    assert play.states[-1] == "STOPPING=1"


# -- a host described by a file


@one_server
def test_a_broken_file_leaves_what_was_reported(
    transport: CountingTransport, tmp_path: Path
) -> None:
    world = RemoteWorld(transport)
    host = world.name("host")
    path = tmp_path / "tree.yaml"
    owner = Owner(Reporter(transport), "agent", MemoryRecords())
    driver = FileDriver(str(path))

    def with_file(text: str) -> Callable[[], Report]:
        def report() -> Report:
            path.write_text(text)
            return owner.report(driver, host, world.uuid("host"))

        return report

    def good(total: int) -> Callable[[], Report]:
        return with_file(f"providers: [{{name: {host}, inventories: {{VCPU: {total}}}}}]")

    def still_there() -> Report:
        assert world.totals("host") == {"VCPU": 8}
        return NOTHING

    play = played(good(8), with_file("providers: [{name: "), still_there, with_file(""), good(9))

    assert world.totals("host") == {"VCPU": 9}
    assert [report.difference.lines() for report in play.changed] == [
        [
            f"{host}: created",
            f"{host}: inventory VCPU added (total 8)",
            f"{host}: traits added: CUSTOM_OWNER_AGENT",
        ],
        [f"{host}: inventory VCPU total 8 -> 9"],
    ]
    assert [f"{path}:1:" in line for line in play.failed] == [True, True]
    assert len(play.recovered) == 2


def test_that_nobody_can_be_told_is_no_reason_to_stop(caplog: pytest.LogCaptureFixture) -> None:
    def deaf(_: object) -> None:
        raise OSError("No space left on device")

    play = Play(change("a"), OperatorError("no"), change("b"), NOTHING)
    play.agent._changed = play.agent._failed = play.agent._recovered = deaf
    play.run()
    assert len(play.began) == 4
    assert caplog.text.count("What happened could not be told") == 4
