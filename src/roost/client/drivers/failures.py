"""Failures of drivers: whatever a driver raises becomes one error that names it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from roost.client.errors import DriverFailed, ReshapeNeeded
from roost.model.errors import OperatorError

LOG = logging.getLogger(__name__)


def asks_for_reshape(error: BaseException) -> bool:
    """Whether this is a `ReshapeNeeded`: the client's, or Nova's in a driver that Nova has too."""
    return isinstance(error, ReshapeNeeded) or any(
        kind.__name__ == ReshapeNeeded.__name__ for kind in type(error).__mro__
    )


@contextmanager
def naming_driver(name: str, *, may_reshape: bool = False) -> Iterator[None]:
    """Turn what a driver raises into `DriverFailed`; errors for operators pass.

    A driver that calls `sys.exit` would end the agent without a word, so that is a failure, too.
    """
    try:
        yield
    except OperatorError:
        raise
    except (Exception, SystemExit) as error:
        if may_reshape and asks_for_reshape(error):
            raise
        LOG.debug("Driver %s failed", name, exc_info=error)
        text = f"{type(error).__name__}: {error}".removesuffix(": ")
        raise DriverFailed(f"Driver {name} failed with {text}") from error
