"""The shell completes the words of a request."""

from __future__ import annotations

import pytest
from click.shell_completion import BashComplete

from roost.cli.main import cli
from roost.cli.shared import completers
from support.stubs.question_stub import Serving


def completed(*words: str) -> list[str]:
    """What a shell offers for the last word."""
    completion = BashComplete(cli, {}, "roost", "_ROOST_COMPLETE")
    *earlier, last = words
    return [item.value for item in completion.get_completions(earlier, last)]


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["explain", "V"], ["VCPU="]),
        (["explain", "vc"], ["VCPU="]),
        (["explain", "VCPU=4,P"], ["VCPU=4,PCPU="]),
        (["explain", "VCPU="], []),
        (["explain", "VCPU=4", "--require", "HW"], ["HW_CPU_X86_AVX2"]),
        (["explain", "VCPU=4", "--require", "in:A,!CU"], ["in:A,!CUSTOM_GOLD"]),
        (["explain", "--group", "cpu", "--group", "net", "--same-subtree", "c"], ["cpu"]),
        (["explain", "--group", "cpu", "--group", "net", "--same-subtree", "cpu,"], ["cpu,net"]),
        (["candidates", "VCPU=4", "--in-tree", "compute-1_"], ["compute-1_numa0"]),
        (["why", "compute-1_"], ["compute-1_numa0"]),
        (["why", "compute-1", "P"], ["PCPU="]),
        (["whatif", "--drain", "compute-1_"], ["compute-1_numa0"]),
        (["whatif", "--drain", "compute-1", "cap"], ["capacity"]),
        (["whatif", "--drain", "compute-1", "capacity", "P"], ["PCPU="]),
        (["explain", "--output", "j"], ["json"]),
    ],
    ids=" ".join,
)
def test_names_come_from_the_server_and_from_the_line(
    serving: Serving, words: list[str], offered: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # The server has time on a busy machine.
    monkeypatch.setattr(completers, "SECONDS_IN_ALL", 120.0)
    serving({})
    assert completed(*words) == offered
