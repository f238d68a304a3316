"""An operator ends a command with Ctrl-C."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import Event
from types import FrameType

from roost.model.errors import OperatorError

EXIT_STATUS = 130
"""The status of a command that SIGINT has ended, as shells have it."""


class Interrupted(OperatorError):
    """The operator has interrupted the command."""


@contextmanager
def noticing_interruption(advice: str = "") -> Iterator[None]:
    """Turn Ctrl-C into `Interrupted`, before click calls it an abortion with status 1."""
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(f"Interrupted. {advice}".rstrip()) from None


def continuing() -> AbstractContextManager[None]:
    """The same for a command that continues its work when it runs again."""
    return noticing_interruption("Run the same command again: it continues.")


@contextmanager
def ending_after_steps(*, at_once: bool = False) -> Iterator[Event]:
    """Ctrl-C sets the event, so that the command can end the steps under way; a second one ends it.

    With `at_once` the first one ends it: steps that only read need no end. A signal that comes
    while the context ends counts as before.
    """
    asked = Event()

    def ask(number: int, frame: FrameType | None) -> None:
        del number, frame
        signal.signal(signal.SIGINT, before)
        asked.set()
        if at_once:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, before)
