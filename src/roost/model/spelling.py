"""Names that were meant: the known one that is nearest to a misspelt one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str], likeness: float = 0.6) -> str | None:
    """The known name that the operator may have meant, if any is that much like it.

    >>> nearest("sslmod", ["sslmode", "sslcert"])
    'sslmode'
    """
    return next(iter(difflib.get_close_matches(name, list(known), 1, likeness)), None)
