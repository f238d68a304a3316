"""The owner under which a tree file is applied."""

from __future__ import annotations

import shlex
from pathlib import Path

from roost.cli.terminal import echo_line
from roost.client.errors import NotConfigured
from roost.client.ownership.owner_names import owner_name
from roost.client.ownership.store import FileOwnershipStore, default_directory
from roost.client.tree_file import STANDARD_INPUT, TreeFile
from roost.model.text import own_lines, with_next


def owner_of_file(
    path: str, tree_file: TreeFile, given: str | None, records: Path | None, *, writes: bool
) -> str:
    """The owner that the option or the file names; the name of a file used before counts as well.

    The first use of a file has to name the owner: a silent owner would change with the name of
    the file, and what the file declared would have no owner any more. A command that writes
    nothing goes on with the name of the file.
    """
    named = given or tree_file.owner
    if named:
        return owner_name(named)
    name = _name_of_file(path)
    remedy = f"`owner: {name}` in the file, or --owner {name}"
    if FileOwnershipStore(name, records).trees():
        # The records are those of an earlier use.
        echo_line(
            f"note: {path} names no owner, and goes on as owner {name}, which has records. "
            f"A renamed file would lose them: better write {remedy}",
            err=True,
        )
    elif writes:
        raise _nameless(path, name, records)
    else:
        echo_line(
            f"note: {path} names no owner, and is compared as owner {name}. "
            f"`roost tree apply` needs {remedy}",
            err=True,
        )
    return name


def _name_of_file(path: str) -> str:
    if path == STANDARD_INPUT:
        raise NotConfigured("The declaration has no owner. Give --owner, or `owner:` in the file.")
    try:
        return owner_name(Path(path).stem)
    except NotConfigured as error:
        raise NotConfigured(f"{error}; give --owner, or `owner:` in the file") from None


def _nameless(path: str, name: str, records: Path | None) -> NotConfigured:
    directory = records or default_directory()
    with_records = f" --records {shlex.quote(str(records))}" if records else ""
    return NotConfigured(
        with_next(
            own_lines(
                f"{path} names no owner, and {directory} has no records of an owner {name}. An "
                "owner removes later what it wrote and no longer declares, so its name must stay "
                "when the file gets another name.",
                f"Add the line `owner: {name}` to the file, or give --owner {name}; any name will "
                "do.",
            ),
            f"roost tree apply -f {shlex.quote(path)} --owner {name}{with_records}",
        )
    )
