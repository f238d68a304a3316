"""The driver `file`: a tree file describes the host."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from roost.client.drivers.driver import DeclaringDriver
from roost.client.tree_file import STANDARD_INPUT, TreeFile, TreeFileError, read_tree_file
from roost.model.trees.declaration import Declaration, DeclaredProvider

PLACEHOLDER = "{node}"
"""The placeholder for the name of the host in names: one file serves many hosts."""

_ROOTS_SHOWN = 10
_LOG = logging.getLogger(__name__)


class FileDriver(DeclaringDriver):
    """Declares the tree of a tree file whose root has the name of the host.

    The driver reads the file again when the file has changed.
    """

    declares_intent = True
    """An operator writes the file, so what is no longer in it is withdrawn at once."""

    def __init__(self, path: Annotated[str, "The tree file that describes the host."]) -> None:
        if path == STANDARD_INPUT:
            raise ValueError(
                "the driver reads the file again and again; give the path of a file instead of -"
            )
        self._path = Path(path).absolute()
        self._read: tuple[object, TreeFile] | None = None

    def declare(self, nodename: str) -> Declaration:
        """The host's tree in the present file."""
        tree_file = self._tree_file()
        for warning in tree_file.warnings:
            _LOG.warning("%s", warning)
        problems = tuple(self._placeholder_problems(tree_file, nodename))
        if problems:
            raise TreeFileError(problems)
        declaration = Declaration(
            tuple(_filled_in(provider, nodename) for provider in tree_file.declaration.providers)
        )
        trees = declaration.trees()
        if nodename not in trees:
            raise TreeFileError(
                [f"{self._path}: no root is named `{nodename}`: {_there_are(list(trees))}"]
            )
        return trees[nodename]

    def _tree_file(self) -> TreeFile:
        """The content of the file, which is read again only if the file has changed."""
        try:
            status = self._path.stat()
        except OSError:
            return read_tree_file(self._path)
        state = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        if self._read is None or self._read[0] != state:
            self._read = None
            self._read = (state, read_tree_file(self._path))
        return self._read[1]

    def _placeholder_problems(self, tree_file: TreeFile, nodename: str) -> Iterator[str]:
        first: dict[str, str] = {}
        for provider in tree_file.declaration.providers:
            at = f"{self._path}:{tree_file.lines[provider.name]}:"
            name = _fill_in(provider.name, nodename)
            other = first.setdefault(name, provider.name)
            if other != provider.name:
                yield (
                    f"{at} on this host `{provider.name}` and `{other}` (line"
                    f" {tree_file.lines[other]}) are both `{name}`: rename one of them"
                )
            if PLACEHOLDER in provider.name and provider.uuid is not None:
                yield (
                    f"{at} `{provider.name}` is another provider on each host, but would have"
                    " the same uuid on all: remove `uuid`, or write the name out"
                )


def _filled_in(provider: DeclaredProvider, nodename: str) -> DeclaredProvider:
    parent = provider.parent
    return replace(
        provider,
        name=_fill_in(provider.name, nodename),
        parent=None if parent is None else _fill_in(parent, nodename),
    )


def _fill_in(name: str, nodename: str) -> str:
    return name.replace(PLACEHOLDER, nodename)


def _there_are(roots: list[str]) -> str:
    if not roots:
        return "the file declares no providers at all; add it"
    shown = ", ".join(roots[:_ROOTS_SHOWN])
    more = len(roots) - _ROOTS_SHOWN
    rest = f" and {more} more" if more > 0 else ""
    return f'there are {shown}{rest}; add it, or name a root "{PLACEHOLDER}"'
