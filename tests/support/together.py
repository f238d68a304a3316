"""Processes that do the same thing at the same moment.

They are forks of one process that has imported all they need: eight of them begin together, and
nobody waits for eight imports.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from tempfile import TemporaryFile
from typing import IO, NamedTuple, NoReturn


class Ended(NamedTuple):
    """How a process ended, and what it said."""

    status: int
    output: str
    errors: str


def run_together(script: str, count: int, *arguments: str) -> list[Ended]:
    """Run a script once, and then the `work` that it defines in so many processes at once."""
    done = subprocess.run(
        [sys.executable, __file__, script, str(count), *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [Ended(*ended) for ended in json.loads(done.stdout)]


def _main(script: str, count: str, *arguments: str) -> None:
    sys.argv = ["work", *arguments]
    defined: dict[str, Callable[[], None]] = {}
    exec(script, defined)
    # Nothing is ever written to the gate: it ends for all as soon as all have come to it.
    gate, everybody_is_there = os.pipe()
    children = []
    with ExitStack() as stack:
        for _ in range(int(count)):
            output, errors = (stack.enter_context(TemporaryFile("w+")) for _ in range(2))
            process_id = os.fork()
            if process_id == 0:
                os.dup2(output.fileno(), 1)
                os.dup2(errors.fileno(), 2)
                os.close(everybody_is_there)
                os.read(gate, 1)
                _work_and_exit(defined["work"])
            children.append((process_id, output, errors))
        os.close(everybody_is_there)
        print(json.dumps([_end_of(*child) for child in children]))


def _end_of(process_id: int, output: IO[str], errors: IO[str]) -> Ended:
    """How a child ends, when it has."""
    status = os.waitstatus_to_exitcode(os.waitpid(process_id, 0)[1])
    for said in (output, errors):
        said.seek(0)
    return Ended(status, output.read(), errors.read())


def _work_and_exit(work: Callable[[], None]) -> NoReturn:
    status = 1
    try:
        work()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        # Not like the end of the process that it was forked from.
        os._exit(status)


if __name__ == "__main__":
    _main(*sys.argv[1:])
