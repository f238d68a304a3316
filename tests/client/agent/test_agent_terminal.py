"""The terminal of `roost agent`: its end ends the agent, and SIGHUP otherwise means a report."""

from __future__ import annotations

import os
import pty
import signal
import sys
from pathlib import Path

import pytest

from support.waiting import wait_until

PROGRAM = """
import sys
from roost.cli import main
from roost.client.agent.host_report import HostReport
from roost.client.ownership.declarative_reporter import Report
from roost.model.trees.difference import Difference

def report(self):
    with open("reports", "a") as file:
        file.write("x")
    return Report(Difference())

HostReport.report = report
sys.argv = "roost agent --driver linux --interval 3600 --config /dev/null".split()
main.main()
"""
"""An agent whose reports leave a letter each, and need no server."""


def wait_for_reports(folder: Path, number: int) -> None:
    reports = folder / "reports"
    wait_until(lambda: reports.exists() and len(reports.read_text()) >= number)


def exit_status(process_id: int) -> int:
    """Wait for the end of a process."""
    ended: list[int] = []

    def has_ended() -> bool:
        found, status = os.waitpid(process_id, os.WNOHANG)
        ended.append(status)
        return found == process_id

    wait_until(has_ended)
    return os.waitstatus_to_exitcode(ended[-1])


@pytest.mark.parametrize("is_ignored", [False, True], ids=["usual", "nohup"])
def test_a_closed_terminal_ends_the_agent_unless_nohup_started_it(
    tmp_path: Path, is_ignored: bool
) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    environment = {**os.environ, "STATE_DIRECTORY": str(tmp_path / "state")}
    environment = {k: v for k, v in environment.items() if not k.startswith(("OS_", "ROOST_"))}
    process_id, terminal = pty.fork()
    if process_id == 0:
        os.chdir(tmp_path)
        # The test run itself may stand under nohup, and a child inherits that.
        signal.signal(signal.SIGHUP, signal.SIG_IGN if is_ignored else signal.SIG_DFL)
        os.execve(sys.executable, [sys.executable, "program.py"], environment)
    try:
        wait_for_reports(tmp_path, 1)
        # While the terminal is there, the signal is a wish for a report.
        os.kill(process_id, signal.SIGHUP)
        wait_for_reports(tmp_path, 2)
        os.close(terminal)
        if is_ignored:
            wait_for_reports(tmp_path, 3)
            # An agent that the terminal ends would make no further report.
            os.kill(process_id, signal.SIGHUP)
            wait_for_reports(tmp_path, 4)
            os.kill(process_id, signal.SIGTERM)
        assert exit_status(process_id) == 0
        process_id = 0
    finally:
        if process_id:
            os.kill(process_id, signal.SIGKILL)
            os.waitpid(process_id, 0)
