"""What an error of the file or stream means that an export goes to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from roost.model.errors import OperatorError
from roost.moving.export_format import ExportUnusable


class ReceiverGone(OperatorError):
    """The program that reads the export from a pipe has ended."""


@contextmanager
def explaining_writes() -> Iterator[None]:
    """Tell errors of the file from errors of the database, which may be `OSError` as well."""
    try:
        yield
    except BrokenPipeError:
        raise ReceiverGone("The program that reads the export has ended.") from None
    except OSError as error:
        raise ExportUnusable(
            f"The export cannot be written: {error.strerror or error}. Make room there, or name "
            "another file."
        ) from error
