"""The `roost` command in this process: to start a process takes longer than most commands."""

from __future__ import annotations

import io
import json
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import pytest

from roost.cli.main import main


@dataclass(frozen=True)
class Outcome:
    """The output of a command, and its exit status."""

    status: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def roost(*arguments: str, stdin: str = "", encoding: str = "utf-8") -> Outcome:
    """Run `roost` with these arguments, up to its exit, before a terminal of this encoding."""
    given = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    out = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    err = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="backslashreplace")
    given.write(stdin)
    given.seek(0)
    with (
        patch.object(sys, "argv", ["roost", *arguments]),
        patch.object(sys, "stdin", given),
        redirect_stdout(out),
        redirect_stderr(err),
        pytest.raises(SystemExit) as ended,
    ):
        main()
    status = ended.value.code
    assert status is None or isinstance(status, int), f"an exit status is a number: {status}"
    return Outcome(status or 0, _printed(out), _printed(err))


def _printed(stream: io.TextIOWrapper) -> str:
    stream.seek(0)
    return stream.read()
