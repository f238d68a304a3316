"""Processes that do the same thing at the same moment.

One process imports all modules and forks the workers. So eight workers begin at once, and no test
waits for eight imports.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, NamedTuple, NoReturn

from support.waiting import SECONDS_MAX


class Ended(NamedTuple):
    """The exit status and the output of a process."""

    status: int
    output: str
    errors: str


def run_together(script: str, count: int, *arguments: str) -> list[Ended]:
    """Run a script once, and then its function `work` in `count` processes at once."""
    done = subprocess.run(
        [sys.executable, "-m", __name__, script, str(count), *arguments],
        stdin=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [Ended(*ended) for ended in json.loads(done.stdout)]


def _main(script: str, count: str, *arguments: str) -> None:
    sys.argv = ["work", *arguments]
    defined: dict[str, Callable[[], None]] = {}
    exec(script, defined)
    # A read of the gate ends when the last writing end is closed, for all children at once.
    gate, opener = os.pipe()
    children = []
    with ExitStack() as stack:
        for _ in range(int(count)):
            output, errors = (stack.enter_context(TemporaryFile("w+")) for _ in range(2))
            process_id = os.fork()
            if process_id == 0:
                os.dup2(output.fileno(), 1)
                os.dup2(errors.fileno(), 2)
                os.close(opener)
                os.read(gate, 1)
                _work_and_exit(defined["work"])
            children.append((process_id, output, errors))
        os.close(opener)
        print(json.dumps([_end_of(*child) for child in children]))


def _end_of(process_id: int, output: IO[str], errors: IO[str]) -> Ended:
    """Wait for a child; its exit status and output."""
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
        # A normal exit would run the exit handlers of the parent process.
        os._exit(status)


if __name__ == "__main__":
    _main(*sys.argv[1:])
