"""Tree files: how they are read and rendered, their entries, and problems of their structure."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import yaml

from roost.client.declaration import Declaration, DeclaredProvider, InventoryFields
from roost.client.provider_tree import LEVELS_MAX, providers_too_deep
from roost.client.tree_file.schema import (
    closest,
    file_problems,
    is_known_trait,
    provider_problems,
    suggested_trait,
)
from roost.client.tree_file.yaml_lines import (
    FileProblem,
    Located,
    UnreadableYaml,
    decoded,
    locate,
    take_json_numbers,
)
from roost.model.errors import OperatorError
from roost.model.identifiers import canonical_uuid, is_uuid
from roost.model.text import own_lines

NAMES_LOOKED_FOR = 20
"""For how many missing parents of a file there is a suggestion."""

STANDARD_INPUT = "-"

PROBLEMS_MAX = 100
"""How many problems of a file an error lists."""

_Children = dict[str | None, list[DeclaredProvider]]
"""Providers by the name of their parent."""

# As a declaration an empty file would remove all providers of its owner.
_EMPTY_FILE = FileProblem(
    1, 1, "the file is empty: write `providers: []` to declare that there are none"
)


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


def entries_of(document: Located) -> Iterator[ProviderEntry]:
    """Every provider of a file, in the order of the lines."""
    for provider in document.list_items("providers"):
        yield from _with_children(ProviderEntry(provider))


def _with_children(entry: ProviderEntry) -> Iterator[ProviderEntry]:
    yield entry
    for child in entry.source.list_items("children"):
        yield from _with_children(ProviderEntry(child, above=entry))


def structure_problems(entries: Sequence[ProviderEntry]) -> Iterator[FileProblem]:
    """The problems between providers, and between the numbers of an inventory.

    Skips values of a wrong type, such as a name that is a number: the schema reports them.
    """
    yield from _repetitions(entries, "name", lambda entry: entry.name)
    yield from _repetitions(entries, "uuid", lambda entry: entry.uuid)
    by_name: dict[str, ProviderEntry] = {}
    for entry in entries:
        if entry.name is not None:
            by_name.setdefault(entry.name, entry)
    suggestions = _Suggestions(by_name)
    for entry in entries:
        yield from _parent_problems(entry, by_name, suggestions)
        yield from _reservation_problems(entry)
    yield from _circle_problems(by_name)
    yield from _depth_problems(by_name)


def _repetitions(
    entries: Sequence[ProviderEntry], key: str, value_of: Callable[[ProviderEntry], str | None]
) -> Iterator[FileProblem]:
    first: dict[str, ProviderEntry] = {}
    for entry in entries:
        value = value_of(entry)
        if value is None:
            continue
        other = first.setdefault(value, entry)
        if other is not entry:
            line = other.source.items[key].line
            text = f"the {key} `{value}` is taken in line {line}: give each provider its own"
            yield entry.source.items[key].problem(text)


class _Suggestions:
    """Suggestions for names that are not in the file.

    A search through thousands of names takes milliseconds. So each name is searched for once, and
    at most `NAMES_LOOKED_FOR` names are.
    """

    def __init__(self, names: Collection[str]) -> None:
        self._names = names
        self._found: dict[str, str | None] = {}

    def fix(self, missing: str) -> str:
        """What to do about a missing name."""
        if missing not in self._found and len(self._found) < NAMES_LOOKED_FOR:
            self._found[missing] = closest(missing, self._names)
        suggestion = self._found.get(missing)
        return f"did you mean `{suggestion}`?" if suggestion else "add it to the file"


def _parent_problems(
    entry: ProviderEntry, by_name: Mapping[str, ProviderEntry], suggestions: _Suggestions
) -> Iterator[FileProblem]:
    parent = entry.source.text("parent")
    if parent is None:
        return
    place = entry.source.items["parent"]
    if parent not in by_name:
        fix = suggestions.fix(parent)
        yield place.problem(f"there is no provider `{parent}` in this file: {fix}")
    elif entry.above is not None and entry.above.name not in (None, parent):
        yield place.problem(
            f"the parent is `{parent}` here, but this provider is among the children of"
            f" `{entry.above.name}`: remove `parent`, or move the provider"
        )


def _circle_problems(by_name: Mapping[str, ProviderEntry]) -> Iterator[FileProblem]:
    for circle in _circles({name: entry.parent for name, entry in by_name.items()}):
        # Nesting alone makes no circle, so at least one entry has the key `parent`.
        named = next(by_name[name] for name in circle if by_name[name].above is None)
        way = " -> ".join(f"`{name}`" for name in [*circle, circle[0]])
        yield named.source.items["parent"].problem(
            f"the parents go round in a circle, {way}: remove `parent` from one of them"
        )


def _depth_problems(by_name: Mapping[str, ProviderEntry]) -> Iterator[FileProblem]:
    for name in providers_too_deep({name: entry.parent for name, entry in by_name.items()}):
        yield (
            by_name[name]
            .source.items["name"]
            .problem(
                f"`{name}` is on level {LEVELS_MAX + 1} of its tree, and a tree has at most"
                f" {LEVELS_MAX}: give it a parent nearer to the root"
            )
        )


def _circles(parents: Mapping[str, str | None]) -> Iterator[list[str]]:
    """Every circle of parents, each once."""
    met_from: dict[str, str] = {}
    for start in parents:
        name: str | None = start
        while name is not None and name not in met_from:
            met_from[name] = start
            name = parents.get(name)
        if name is not None and met_from[name] == start:
            yield _round(name, parents)


def _round(first: str, parents: Mapping[str, str | None]) -> list[str]:
    circle = [first]
    while (parent := parents[circle[-1]]) not in (None, first):
        circle.append(str(parent))
    return circle


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


def read_tree_file(path: str | Path) -> TreeFile:
    """The tree file at a path; `-` is the standard input."""
    from_standard_input = str(path) == STANDARD_INPUT
    name = "<stdin>" if from_standard_input else str(path)
    try:
        content = sys.stdin.buffer.read() if from_standard_input else Path(path).read_bytes()
    except OSError as error:
        raise TreeFileError([f"{name}: cannot be read: {error.strerror}"]) from None
    try:
        return parse_tree_file(decoded(content), name)
    except UnreadableYaml as error:
        raise TreeFileError([error.problem.in_file(name)]) from None


def parse_tree_file(text: str, name: str) -> TreeFile:
    """The tree file in a text; its problems begin with `name`."""
    try:
        document, problems = locate(text)
    except UnreadableYaml as error:
        raise TreeFileError([error.problem.in_file(name)]) from None
    if document is None or document.value is None:
        raise TreeFileError([_EMPTY_FILE.in_file(name)])
    entries = list(entries_of(document))
    refusals = _first(chain(problems, _problems(document, entries)), name)
    if refusals:
        raise TreeFileError(refusals)
    return TreeFile(
        owner=document.text("owner"),
        declaration=Declaration(tuple(_parents_first(map(_provider, entries)))),
        lines={entry.name: entry.source.line for entry in entries if entry.name is not None},
        warnings=tuple(_first(_trait_warnings(entries), name)),
    )


def _problems(document: Located, entries: list[ProviderEntry]) -> Iterator[FileProblem]:
    yield from file_problems(document)
    for entry in entries:
        yield from provider_problems(entry.source)
    yield from structure_problems(entries)


def _first(problems: Iterable[FileProblem], name: str) -> list[str]:
    """The problems in the order of the lines, at most `PROBLEMS_MAX` of them.

    The suggestion of each problem takes milliseconds, and no operator reads hundreds.
    """
    # A problem behind an anchor comes once for each alias.
    found: set[FileProblem] = set()
    for problem in problems:
        if problem not in found and len(found) == PROBLEMS_MAX:
            shown = [problem.in_file(name) for problem in sorted(found)]
            return [
                *shown,
                f"{name}: there are more than these {PROBLEMS_MAX}: correct these first",
            ]
        found.add(problem)
    return [problem.in_file(name) for problem in sorted(found)]


def _provider(entry: ProviderEntry) -> DeclaredProvider:
    """The provider of an entry without problems."""
    keys: dict[str, Any] = entry.source.value
    uuid = keys.get("uuid")
    return DeclaredProvider(
        name=keys["name"],
        parent=entry.parent,
        uuid=None if uuid is None else canonical_uuid(uuid),
        inventories={
            resource_class: _inventory_fields(inventory)
            for resource_class, inventory in keys.get("inventories", {}).items()
        },
        traits=frozenset(keys.get("traits", ())),
        aggregates=frozenset(canonical_uuid(uuid) for uuid in keys.get("aggregates", ())),
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


def _trait_warnings(entries: Iterable[ProviderEntry]) -> Iterator[FileProblem]:
    for entry in entries:
        for trait in entry.source.list_items("traits"):
            if not is_known_trait(trait.value):
                yield trait.problem(_trait_warning(trait))


def _trait_warning(trait: Located) -> str:
    return (
        f"`{trait.value}` is not among the standard traits installed here, though the server may"
        f" know it: if not, did you mean `{suggested_trait(trait.value)}`?"
    )


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
