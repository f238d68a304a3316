"""Calls of drivers: an error in the code of a driver names the driver and the line."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import roost
from roost.client.declaration import Declaration
from roost.client.drivers.declaration_check import checked_declaration
from roost.client.drivers.driver import DeclaringDriver
from roost.client.errors import DriverFailed, ReshapeNeeded
from roost.model.errors import OperatorError

_OWN_CODE = Path(roost.__file__).parent


def declared_by(driver: DeclaringDriver, nodename: str) -> Declaration:
    """What a driver declares of a host; raises an error if that describes no host."""
    with calling(driver):
        declared = driver.declare(nodename)
    return checked_declaration(declared, nodename)


@contextmanager
def calling(driver: object, *, may_reshape: bool = True) -> Iterator[None]:
    """Turn an unexpected error of the driver into `DriverFailed`, which has it as its cause.

    A driver that calls `sys.exit` would end the agent without a word, so that is a failure, too.
    """
    try:
        yield
    except OperatorError:
        raise
    except (Exception, SystemExit) as error:
        if may_reshape and asks_for_reshape(error):
            raise
        text = f"{type(error).__name__}: {error}".removesuffix(": ")
        raise DriverFailed(f"{_name_of(driver)} failed with {text} ({_place_of(error)})") from error


def asks_for_reshape(error: BaseException) -> bool:
    """Whether this is a `ReshapeNeeded`: the client's, or Nova's in a driver that Nova has too."""
    return isinstance(error, ReshapeNeeded) or any(
        kind.__name__ == ReshapeNeeded.__name__ for kind in type(error).__mro__
    )


def _name_of(driver: object) -> str:
    kind = type(driver)
    return f"The driver {kind.__module__}:{kind.__qualname__}"


def _place_of(error: BaseException) -> str:
    """The last line outside Roost that led to the error, or else the last line of all."""
    frames = traceback.extract_tb(error.__traceback__)
    # Code that Python makes, such as the constructor of a dataclass, has no file.
    in_files = [frame for frame in frames if not frame.filename.startswith("<")]
    outside = [frame for frame in in_files if _OWN_CODE not in Path(frame.filename).parents]
    last = (outside or frames)[-1]
    return f"{last.filename}, line {last.lineno}, in {last.name}"
