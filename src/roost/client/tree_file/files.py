"""The tree file: a declaration as people write it, in YAML or JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import yaml

from roost.client.declaration import Declaration, DeclaredProvider, InventoryFields
from roost.client.tree_file.names import is_known_trait, meant_trait
from roost.client.tree_file.schema import file_problems, provider_problems
from roost.client.tree_file.structure import Entry, entries_of, structure_problems
from roost.client.tree_file.yaml_lines import (
    Located,
    Problem,
    UnreadableYaml,
    locate,
    take_json_numbers,
)
from roost.model.errors import OperatorError
from roost.model.identifiers import canonical_uuid

STANDARD_INPUT = "-"

NESTED_LEVELS = 20
"""How many levels of a tree are written inside each other. Each takes two of those of YAML, of
which no more than `NESTING_MAX` are read."""

PROBLEMS_MAX = 100
"""How many problems of a file are told at once."""

_Children = dict[str | None, list[DeclaredProvider]]
"""Providers by the name of their parent."""

# Taken for a declaration it would say that nothing is there any more.
_EMPTY = Problem(1, 1, "the file is empty: write `providers: []` to declare that there are none")


class TreeFileError(OperatorError, ValueError):
    """A tree file that cannot be used. The text has a line for everything that is wrong."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


@dataclass(frozen=True, slots=True)
class TreeFile:
    """What a file declares, for whom, in which line each provider begins, and what looks odd."""

    owner: str | None
    declaration: Declaration
    lines: Mapping[str, int]
    warnings: tuple[str, ...] = ()


def read_tree_file(path: str | Path) -> TreeFile:
    """What a file declares; `-` is the standard input."""
    from_standard_input = str(path) == STANDARD_INPUT
    name = "<stdin>" if from_standard_input else str(path)
    try:
        content = sys.stdin.buffer.read() if from_standard_input else Path(path).read_bytes()
    except OSError as error:
        raise TreeFileError([f"{name}: cannot be read: {error.strerror}"]) from None
    return parse_tree_file(_decoded(content, name), name)


def _decoded(content: bytes, name: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line_start = content.rfind(b"\n", 0, error.start) + 1
        line = content.count(b"\n", 0, line_start) + 1
        problem = Problem(line, error.start - line_start + 1, "this is no UTF-8: save it as UTF-8")
        raise TreeFileError([problem.in_file(name)]) from None


def parse_tree_file(text: str, name: str) -> TreeFile:
    """What a text declares; `name` is what its problems are headed with."""
    try:
        document, problems = locate(text)
    except UnreadableYaml as error:
        raise TreeFileError([error.problem.in_file(name)]) from None
    if document is None or document.value is None:
        raise TreeFileError([_EMPTY.in_file(name)])
    entries = list(entries_of(document))
    refusals = _first(chain(problems, _problems(document, entries)), name)
    if refusals:
        raise TreeFileError(refusals)
    return TreeFile(
        owner=document.text("owner"),
        declaration=Declaration(tuple(_parents_first(map(_provider, entries)))),
        lines={entry.name: entry.source.line for entry in entries if entry.name is not None},
        warnings=tuple(_first(_doubts(entries), name)),
    )


def _problems(document: Located, entries: list[Entry]) -> Iterator[Problem]:
    yield from file_problems(document)
    for entry in entries:
        yield from provider_problems(entry.source)
    yield from structure_problems(entries)


def _first(problems: Iterable[Problem], name: str) -> list[str]:
    """The problems in the order of the lines; of very many the first ones.

    To find out what was meant takes milliseconds for each, and hundreds are not read.
    """
    # Something that is wrong behind an anchor is wrong for each of its aliases.
    found: set[Problem] = set()
    for problem in problems:
        if problem not in found and len(found) == PROBLEMS_MAX:
            shown = [problem.in_file(name) for problem in sorted(found)]
            return [*shown, f"{name}: there are more than these {PROBLEMS_MAX}: mend these first"]
        found.add(problem)
    return [problem.in_file(name) for problem in sorted(found)]


def _provider(entry: Entry) -> DeclaredProvider:
    """The provider of an entry with which nothing is wrong."""
    said: dict[str, Any] = entry.source.value
    uuid = said.get("uuid")
    return DeclaredProvider(
        name=said["name"],
        parent=entry.parent,
        uuid=None if uuid is None else canonical_uuid(uuid),
        inventories={
            resource_class: _inventory_fields(inventory)
            for resource_class, inventory in said.get("inventories", {}).items()
        },
        traits=frozenset(said.get("traits", ())),
        aggregates=frozenset(canonical_uuid(uuid) for uuid in said.get("aggregates", ())),
    )


def _inventory_fields(inventory: Any) -> InventoryFields:
    fields = inventory if isinstance(inventory, dict) else {"total": inventory}
    # To a JSON schema 16.0 is a whole number.
    return {
        name: value if name == "allocation_ratio" else int(value) for name, value in fields.items()
    }


def _parents_first(providers: Iterable[DeclaredProvider]) -> Iterator[DeclaredProvider]:
    """Each tree as a whole, depth first; siblings stay in their order."""
    children = _by_parent(providers)
    waiting = children.get(None, [])[::-1]
    while waiting:
        provider = waiting.pop()
        yield provider
        waiting += reversed(children.get(provider.name, []))


def _by_parent(providers: Iterable[DeclaredProvider]) -> _Children:
    children: _Children = {}
    for provider in providers:
        children.setdefault(provider.parent, []).append(provider)
    return children


def _doubts(entries: Iterable[Entry]) -> Iterator[Problem]:
    for entry in entries:
        for trait in entry.source.list_items("traits"):
            if not is_known_trait(trait.value):
                yield trait.problem(_doubt(trait))


def _doubt(trait: Located) -> str:
    return (
        f"`{trait.value}` is not among the standard traits installed here, though the server may"
        f" know it: if not, did you mean `{meant_trait(trait.value)}`?"
    )


def render_tree_file(
    declaration: Declaration, owner: str | None = None, *, as_json: bool = False
) -> str:
    """The text of a file that declares this, and nothing that the declaration leaves open."""
    document: dict[str, Any] = {} if owner is None else {"owner": owner}
    document["providers"] = _plain(declaration.providers)
    if as_json:
        return json.dumps(document, indent=2) + "\n"
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10**6)


def _plain(providers: Iterable[DeclaredProvider]) -> list[dict[str, Any]]:
    """The outermost list of a file: roots, and what would be nested too deep below them."""
    outermost: list[dict[str, Any]] = []
    entries: dict[str | None, dict[str, Any]] = {}
    levels: dict[str | None, int] = {None: -1}
    for provider in providers:
        levels[provider.name] = level = levels[provider.parent] + 1
        if level % NESTED_LEVELS == 0:
            entry, siblings = _entry(provider, provider.parent), outermost
        else:
            entry, siblings = _entry(provider), entries[provider.parent].setdefault("children", [])
        entries[provider.name] = entry
        siblings.append(entry)
    return outermost


def _entry(provider: DeclaredProvider, parent: str | None = None) -> dict[str, Any]:
    said = {
        "name": provider.name,
        "uuid": provider.uuid,
        "parent": parent,
        "traits": sorted(provider.traits),
        "aggregates": sorted(provider.aggregates),
        "inventories": {
            resource_class: _short(fields)
            for resource_class, fields in sorted(provider.inventories.items())
        },
    }
    return {key: value for key, value in said.items() if value}


class _OneLine(dict[str, int | float]):
    """A mapping that is written in one line."""


def _short(fields: InventoryFields) -> int | float | _OneLine:
    return fields["total"] if set(fields) == {"total"} else _OneLine(fields)


class _Dumper(yaml.SafeDumper):
    """Writes every part out, and in quotes whatever some reader could take for a number."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def represent_text(self, text: str) -> yaml.Node:
        # Without quotes some line breaks of Unicode would be read back as spaces.
        style = None if text.isprintable() else '"'
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=style)

    def analyze_scalar(self, scalar: str) -> Any:
        # Each scalar is analysed right before it is written. Control and format characters are
        # written as escapes, because a terminal obeys them.
        self.allow_unicode = scalar.isprintable()
        return super().analyze_scalar(scalar)

    def represent_one_line(self, fields: _OneLine) -> yaml.Node:
        return self.represent_mapping("tag:yaml.org,2002:map", fields, flow_style=True)


take_json_numbers(_Dumper)
_Dumper.add_representer(str, _Dumper.represent_text)
_Dumper.add_representer(_OneLine, _Dumper.represent_one_line)
