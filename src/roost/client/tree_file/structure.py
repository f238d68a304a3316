"""How the providers of a tree file hang together, and where that cannot be."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from roost.client.tree_file.names import closest
from roost.client.tree_file.yaml_lines import Located, Problem
from roost.model.identifiers import canonical_uuid, is_uuid

NAMES_LOOKED_FOR = 20
"""For how many parents that are not in a file another one is suggested."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One provider of a file, right or wrong, and the entry under whose `children` it stands."""

    source: Located
    above: Entry | None = None

    @property
    def name(self) -> str | None:
        """Its name, if it has one."""
        return self.source.text("name")

    @property
    def uuid(self) -> str | None:
        """Its UUID in canonical form, if it has one."""
        uuid = self.source.text("uuid")
        return canonical_uuid(uuid) if uuid is not None and is_uuid(uuid) else None

    @property
    def parent(self) -> str | None:
        """The name of its parent: by where it stands, else by the key `parent`."""
        return self.source.text("parent") if self.above is None else self.above.name


def entries_of(document: Located) -> Iterator[Entry]:
    """Every provider of a file, in the order of the lines."""
    for provider in document.list_items("providers"):
        yield from _with_children(Entry(provider))


def _with_children(entry: Entry) -> Iterator[Entry]:
    yield entry
    for child in entry.source.list_items("children"):
        yield from _with_children(Entry(child, above=entry))


def structure_problems(entries: Sequence[Entry]) -> Iterator[Problem]:
    """What is wrong between providers, and between the numbers of an inventory.

    Takes no notice of parts that are no part of a provider, such as a name that is a number.
    """
    yield from _repetitions(entries, "name", lambda entry: entry.name)
    yield from _repetitions(entries, "uuid", lambda entry: entry.uuid)
    by_name: dict[str, Entry] = {}
    for entry in entries:
        if entry.name is not None:
            by_name.setdefault(entry.name, entry)
    suggestions = _Suggestions(by_name)
    for entry in entries:
        yield from _parent_problems(entry, by_name, suggestions)
        yield from _reservation_problems(entry)
    yield from _circle_problems(by_name)


def _repetitions(
    entries: Sequence[Entry], key: str, value_of: Callable[[Entry], str | None]
) -> Iterator[Problem]:
    first: dict[str, Entry] = {}
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
    """Names that may have been meant by names that there are not.

    To look through thousands of names for one takes milliseconds, so each is looked for once, and
    after a few it is enough.
    """

    def __init__(self, names: Collection[str]) -> None:
        self._names = names
        self._found: dict[str, str | None] = {}

    def fix(self, missing: str) -> str:
        """What to do about a name that there is not."""
        if missing not in self._found and len(self._found) < NAMES_LOOKED_FOR:
            self._found[missing] = closest(missing, self._names)
        meant = self._found.get(missing)
        return f"did you mean `{meant}`?" if meant else "add it to the file"


def _parent_problems(
    entry: Entry, by_name: Mapping[str, Entry], suggestions: _Suggestions
) -> Iterator[Problem]:
    parent = entry.source.text("parent")
    if parent is None:
        return
    place = entry.source.items["parent"]
    if parent not in by_name:
        fix = suggestions.fix(parent)
        yield place.problem(f"there is no provider `{parent}` in this file: {fix}")
    elif entry.above is not None and entry.above.name not in (None, parent):
        yield place.problem(
            f"the parent is `{parent}` here, but this provider stands among the children of"
            f" `{entry.above.name}`: remove `parent`, or move the provider"
        )


def _circle_problems(by_name: Mapping[str, Entry]) -> Iterator[Problem]:
    for circle in _circles({name: entry.parent for name, entry in by_name.items()}):
        # Nesting alone makes no circle: somebody in it names his parent.
        named = next(by_name[name] for name in circle if by_name[name].above is None)
        way = " -> ".join(f"`{name}`" for name in [*circle, circle[0]])
        yield named.source.items["parent"].problem(
            f"the parents go round in a circle, {way}: remove `parent` from one of them"
        )


def _circles(parents: Mapping[str, str | None]) -> Iterator[list[str]]:
    """Every circle of parents, once."""
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


def _reservation_problems(entry: Entry) -> Iterator[Problem]:
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
