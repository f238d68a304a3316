"""The tree structure of the providers in a file, and its problems."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from roost.client.provider_tree import LEVELS_MAX, providers_too_deep
from roost.client.tree_file.schema import closest
from roost.client.tree_file.yaml_lines import FileProblem, Located
from roost.model.identifiers import canonical_uuid, is_uuid

NAMES_LOOKED_FOR = 20
"""For how many missing parents of a file there is a suggestion."""


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
