"""The `roost` command in this process: to start a process takes longer than most commands."""

from __future__ import annotations

import io
import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import click
import pytest

from roost.cli.main import cli, main


@dataclass(frozen=True)
class Outcome:
    """The output of a command, and its exit status."""

    status: int
    out: str
    err: str

    @property
    def shown(self) -> str:
        """What a terminal shows: a question stands before its answer, other notes after it."""
        asks = self.err.startswith(("GET ", "POST "))
        return self.err + self.out if asks else self.out + self.err

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
        _own_log_handlers(),
        pytest.raises(SystemExit) as ended,
    ):
        main()
    status = ended.value.code
    assert status is None or isinstance(status, int), f"an exit status is a number: {status}"
    return Outcome(status or 0, _printed(out), _printed(err))


@contextmanager
def _own_log_handlers() -> Iterator[None]:
    """Forget the handlers that a command adds, since its process would end with them."""
    root = logging.getLogger()
    before = list(root.handlers)
    try:
        yield
    finally:
        root.handlers[:] = before


def all_commands() -> dict[str, click.Command]:
    """Every command without subcommands, by its words."""
    found: dict[str, click.Command] = {}

    def walk(words: tuple[str, ...], command: click.Command) -> None:
        if not isinstance(command, click.Group):
            found[" ".join(words)] = command
            return
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            walk((*words, name), below)

    walk((), cli)
    return found


def _printed(stream: io.TextIOWrapper) -> str:
    stream.seek(0)
    return stream.read()
