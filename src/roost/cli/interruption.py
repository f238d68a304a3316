"""An operator ends a command with Ctrl-C."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

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
