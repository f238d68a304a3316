"""Moving a cloud between databases and servers: export, import, and reading a live server.

`export_format.py` defines the lines of an export, and `export_files.py` opens and reads its files.
`exported_values.py` checks rows by the rules of `store/checks/row_rules.py`.
`exporting.py` writes an export, `importing.py` writes it into a database and verifies it.
"""

from __future__ import annotations

from collections.abc import Callable

# How a long work tells its progress: the number of things in all, and how many were done since.
Advance = Callable[[int, int], None]


def silent(_total: int, _done: int) -> None:
    """Tell no progress."""
