"""Tree files: how they are read and rendered, and the problems between their providers."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import yaml

from roost.client.provider_tree import LEVELS_MAX, providers_too_deep
from roost.client.tree_file.schema import (
    FILE,
    PROVIDER,
    is_known_trait,
    schema_problems,
    suggested_trait,
)
from roost.client.tree_file.yaml_lines import FileProblem, Located, locate, take_json_numbers
from roost.model.errors import OperatorError
from roost.model.identifiers import canonical_uuid, is_uuid
from roost.model.text import nearest, own_lines
from roost.model.trees.declaration import Declaration, DeclaredProvider, InventoryFields

NAMES_LOOKED_FOR = 20
"""For how many missing parents of a file there is a suggestion: each takes milliseconds."""

STANDARD_INPUT = "-"

PROBLEMS_MAX = 100
"""How many problems of a file an error lists."""

_Children = dict[str | None, list[DeclaredProvider]]
"""Providers by the name of their parent."""

# As a declaration an empty file would remove all providers of its owner.
_EMPTY_FILE = FileProblem(
    1, 1, "the file is empty: write `providers: []` to declare that there are none"
)


class TreeFileError(OperatorError, ValueError):
    """A tree file with problems, one per line of the text."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__(own_lines(*self.problems))


@dataclass(frozen=True, slots=True)
class TreeFile:
    """The declaration of a file with its owner, the lines of the providers and the warnings."""

    owner: str | None
    declaration: Declaration
    lines: Mapping[str, int]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProviderEntry:
    """One provider of a file, valid or not; `above` is the entry whose `children` contain it."""

    source: Located
    above: ProviderEntry | None = None

    @property
    def name(self) -> str | None:
        """The name of the provider, if the entry has one."""
        return self.source.text("name")

    @property
    def uuid(self) -> str | None:
        """The UUID of the provider in canonical form, if the entry has a valid one."""
        uuid = self.source.text("uuid")
        return canonical_uuid(uuid) if uuid is not None and is_uuid(uuid) else None

    @property
    def parent(self) -> str | None:
        """The name of the parent: that of the entry above, else the key `parent`."""
        return self.source.text("parent") if self.above is None else self.above.name


def read_tree_file(path: str | Path) -> TreeFile:
    """The tree file at a path; `-` is the standard input."""
    from_standard_input = str(path) == STANDARD_INPUT
    name = "<stdin>" if from_standard_input else str(path)
    try:
        content = sys.stdin.buffer.read() if from_standard_input else Path(path).read_bytes()
    except OSError as error:
        raise TreeFileError([f"{name}: cannot be read: {error.strerror}"]) from None
    return parse_tree_file(content, name)


def parse_tree_file(content: bytes | str, name: str) -> TreeFile:
    """The tree file with this content; its problems begin with `name`."""
    document, problems = locate(content)
    if document is None:
        raise TreeFileError(_first(problems or [_EMPTY_FILE], name))
    entries = [
        entry
        for provider in document.list_items("providers")
        for entry in _with_children(ProviderEntry(provider))
    ]
    of_providers = (schema_problems(PROVIDER, entry.source) for entry in entries)
    refusals = chain(
        problems,
        schema_problems(FILE, document),
        chain.from_iterable(of_providers),
        _structure_problems(entries),
    )
    if refused := _first(refusals, name):
        raise TreeFileError(refused)
    return TreeFile(
        owner=document.text("owner"),
        declaration=Declaration(tuple(_parents_first(map(_provider, entries)))),
        lines={entry.name: entry.source.line for entry in entries if entry.name is not None},
        warnings=tuple(_first(_trait_warnings(entries), name)),
    )


def _with_children(entry: ProviderEntry) -> Iterator[ProviderEntry]:
    yield entry
    for child in entry.source.list_items("children"):
        yield from _with_children(ProviderEntry(child, above=entry))


def _first(problems: Iterable[FileProblem], name: str) -> list[str]:
    """The problems in the order of the lines, at most `PROBLEMS_MAX` of them.

    The suggestion of each problem takes milliseconds, and no operator reads hundreds.
    """
    # A problem behind an anchor comes once for each alias.
    found: set[FileProblem] = set()
    more = []
    for problem in problems:
        if problem not in found and len(found) == PROBLEMS_MAX:
            more = [f"{name}: there are more than these {PROBLEMS_MAX}: correct these first"]
            break
        found.add(problem)
    return [*(problem.in_file(name) for problem in sorted(found)), *more]


# -- problems between providers, and between the numbers of an inventory


def _structure_problems(entries: Sequence[ProviderEntry]) -> Iterator[FileProblem]:
    """Skips values of a wrong type, such as a name that is a number: the schema reports them."""
    by_name: dict[str, ProviderEntry] = {}
    by_uuid: dict[str, ProviderEntry] = {}
    for entry in entries:
        yield from _repetition(entry, "name", entry.name, by_name)
        yield from _repetition(entry, "uuid", entry.uuid, by_uuid)
        yield from _reservation_problems(entry)
    yield from _parent_problems(entries, by_name)
    parents = {name: entry.parent for name, entry in by_name.items()}
    for circle in _circles(parents):
        # Nesting alone makes no circle, so at least one entry has the key `parent`.
        named = next(by_name[name] for name in circle if by_name[name].above is None)
        way = " -> ".join(f"`{name}`" for name in [*circle, circle[0]])
        yield named.source.items["parent"].problem(
            f"the parents go round in a circle, {way}: remove `parent` from one of them"
        )
    for name in providers_too_deep(parents):
        yield (by_name[name].source.items["name"]).problem(
            f"`{name}` is on level {LEVELS_MAX + 1} of its tree, and a tree has at most"
            f" {LEVELS_MAX}: give it a parent nearer to the root"
        )


def _repetition(
    entry: ProviderEntry, key: str, value: str | None, first: dict[str, ProviderEntry]
) -> Iterator[FileProblem]:
    if value is not None and (other := first.setdefault(value, entry)) is not entry:
        line = other.source.items[key].line
        yield entry.source.items[key].problem(
            f"the {key} `{value}` is taken in line {line}: give each provider its own"
        )


def _parent_problems(
    entries: Sequence[ProviderEntry], by_name: Mapping[str, ProviderEntry]
) -> Iterator[FileProblem]:
    meant: dict[str, str | None] = {}
    for entry in entries:
        parent = entry.source.text("parent")
        if parent is None:
            continue
        place = entry.source.items["parent"]
        if parent not in by_name:
            if parent not in meant and len(meant) < NAMES_LOOKED_FOR:
                meant[parent] = nearest(parent, by_name)
            fix = f"did you mean `{name}`?" if (name := meant.get(parent)) else "add it to the file"
            yield place.problem(f"there is no provider `{parent}` in this file: {fix}")
        elif entry.above is not None and entry.above.name not in (None, parent):
            yield place.problem(
                f"the parent is `{parent}` here, but this provider is among the children of"
                f" `{entry.above.name}`: remove `parent`, or move the provider"
            )


def _circles(parents: Mapping[str, str | None]) -> Iterator[list[str]]:
    """Every circle of parents, each once."""
    met: set[str] = set()
    for start in parents:
        way: list[str] = []
        name: str | None = start
        while name is not None and name not in met:
            met.add(name)
            way.append(name)
            name = parents.get(name)
        if name is not None and name in way:
            yield way[way.index(name) :]


def _reservation_problems(entry: ProviderEntry) -> Iterator[FileProblem]:
    inventories = entry.source.items.get("inventories")
    for inventory in inventories.items.values() if inventories is not None else ():
        total, reserved = inventory.items.get("total"), inventory.items.get("reserved")
        if total is None or reserved is None:
            continue
        amounts = (total.value, reserved.value)
        if all(isinstance(amount, int) for amount in amounts) and reserved.value > total.value:
            yield reserved.problem(
                f"{reserved.value} are reserved of a total of {total.value}: write"
                f" {total.value} or less"
            )


def _trait_warnings(entries: Iterable[ProviderEntry]) -> Iterator[FileProblem]:
    for entry in entries:
        for trait in entry.source.list_items("traits"):
            if not is_known_trait(trait.value):
                yield trait.problem(
                    f"`{trait.value}` is not among the standard traits installed here, though the"
                    f" server may know it: if not, did you mean `{suggested_trait(trait.value)}`?"
                )


# -- from entries to a declaration, and back to a text


def _provider(entry: ProviderEntry) -> DeclaredProvider:
    """The provider of an entry without problems."""
    keys: dict[str, Any] = entry.source.value
    return DeclaredProvider(
        name=keys["name"],
        parent=entry.parent,
        uuid=keys.get("uuid"),
        inventories={
            resource_class: _inventory_fields(inventory)
            for resource_class, inventory in keys.get("inventories", {}).items()
        },
        traits=keys.get("traits", frozenset()),
        aggregates=keys.get("aggregates", frozenset()),
    )


def _inventory_fields(inventory: Any) -> InventoryFields:
    fields = inventory if isinstance(inventory, dict) else {"total": inventory}
    # A JSON schema accepts 16.0 as an integer.
    return {
        name: value if name == "allocation_ratio" else int(value) for name, value in fields.items()
    }


def _parents_first(providers: Iterable[DeclaredProvider]) -> Iterator[DeclaredProvider]:
    """The providers tree by tree, depth first; siblings keep their order."""
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


def render_tree_file(
    declaration: Declaration, owner: str | None = None, *, as_json: bool = False
) -> str:
    """The text of a file with this declaration. Absent fields stay absent."""
    document: dict[str, Any] = {} if owner is None else {"owner": owner}
    children = _by_parent(declaration.providers)
    document["providers"] = [_entry(root, children) for root in declaration.roots]
    if as_json:
        return json.dumps(document, indent=2) + "\n"
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10**6)


def _entry(provider: DeclaredProvider, children: _Children) -> dict[str, Any]:
    """The entry of a provider in a file, with the providers below it."""
    entry = {
        "name": provider.name,
        "uuid": provider.uuid,
        "traits": sorted(provider.traits),
        "aggregates": sorted(provider.aggregates),
        "inventories": {
            resource_class: _short(fields)
            for resource_class, fields in sorted(provider.inventories.items())
        },
        "children": [_entry(child, children) for child in children.get(provider.name, ())],
    }
    return {key: value for key, value in entry.items() if value}


class _OneLine(dict[str, int | float]):
    """A mapping that the dumper writes in one line."""


def _short(fields: InventoryFields) -> int | float | _OneLine:
    return fields["total"] if set(fields) == {"total"} else _OneLine(fields)


class _Dumper(yaml.SafeDumper):
    """Writes no aliases, and quotes text that a reader of YAML or JSON could take for a number."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def represent_text(self, text: str) -> yaml.Node:
        # A YAML reader takes some unquoted line breaks of Unicode for spaces.
        style = None if text.isprintable() else '"'
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=style)

    def analyze_scalar(self, scalar: str) -> Any:
        # PyYAML analyses each scalar right before it writes it. Control and format characters
        # become escapes, because a terminal obeys them.
        self.allow_unicode = scalar.isprintable()
        return super().analyze_scalar(scalar)

    def represent_one_line(self, fields: _OneLine) -> yaml.Node:
        return self.represent_mapping("tag:yaml.org,2002:map", fields, flow_style=True)


take_json_numbers(_Dumper)
_Dumper.add_representer(str, _Dumper.represent_text)
_Dumper.add_representer(_OneLine, _Dumper.represent_one_line)
