"""YAML, and so JSON, as values that know their line and column."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml
from yaml.constructor import SafeConstructor

NESTING_MAX = 64
"""How deep lists and mappings may lie in each other, aliases written out."""

NUMBER_LENGTH_MAX = 100
"""How many characters a number may have. To read one of millions of digits takes minutes."""

TEXT_SHOWN = 200
"""How much of its beginning and of its end is shown of the text of a problem."""

# Aliases may make a text this much longer. Without any a text has fewer values than characters.
_EXPANSION_BASE = 20_000
_EXPANSION_FACTOR = 20

_TAG = "tag:yaml.org,2002:"
_STRING, _MERGE = f"{_TAG}str", f"{_TAG}merge"
_INT, _FLOAT = f"{_TAG}int", f"{_TAG}float"
# As PyYAML has it, but for 1:30, which is a number to base 60 there: here it is text.
_INTEGER = re.compile(r"[-+]?(0b[01_]+|0x[0-9a-fA-F_]+|0[0-7_]*|[1-9][0-9_]*)\Z")
_NUMBER = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?\Z")


def _int(constructor: Any, node: Any) -> int:
    if _INTEGER.match(node.value) is None:
        raise ValueError(node.value)
    number: int = SafeConstructor.construct_yaml_int(constructor, node)
    return number


def _float(constructor: Any, node: Any) -> float:
    if _NUMBER.match(node.value) is None:
        raise ValueError(node.value)
    return float(node.value)


_CONSTRUCTOR = SafeConstructor()
_SCALARS: dict[str, Callable[[Any, Any], Any]] = {
    f"{_TAG}null": SafeConstructor.construct_yaml_null,
    f"{_TAG}bool": SafeConstructor.construct_yaml_bool,
    _INT: _int,
    _FLOAT: _float,
}
_KNOWN_TAGS = {*_SCALARS, _STRING, _MERGE, f"{_TAG}seq", f"{_TAG}map"}

_SYNTAX_ADVICE = (
    "check the indentation and the brackets, and put quotes around text that has `: ` in it"
    " or begins with one of {[&*!|>%@`"
)
_COMPOSITION_ADVICE = "keep to one document, and define each anchor once and before its aliases"


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """What is wrong at one place of a text. Lines and columns count from 1."""

    line: int
    column: int
    text: str

    def in_file(self, name: str) -> str:
        """The problem in one line as editors and terminals like it: they can jump to the place."""
        text = " ".join(self.text.splitlines())
        if len(text) > 3 * TEXT_SHOWN:
            # What is found stands at the beginning, the advice at the end.
            text = f"{text[:TEXT_SHOWN]} ... {text[-TEXT_SHOWN:]}"
        return f"{name}:{self.line}:{self.column}: {text}"


class UnreadableYaml(ValueError):
    """The text is no YAML, or none that can be read safely."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        super().__init__(problem.text)


@dataclass(frozen=True, slots=True)
class Located:
    """A value, where it stands, and for a scalar how it is spelt there.

    `items` are the values inside a list (by index) or a mapping (by key); `keys` are the keys
    of a mapping themselves.
    """

    value: Any
    line: int
    column: int
    spelling: str | None = None
    items: Mapping[str | int, Located] = field(default_factory=dict)
    keys: Mapping[str, Located] = field(default_factory=dict)

    def problem(self, text: str) -> Problem:
        """Something wrong with this value."""
        return Problem(self.line, self.column, text)

    def text(self, key: str) -> str | None:
        """The text under a key; `None` if there is none, or something else."""
        held = self.items.get(key)
        return held.value if held is not None and isinstance(held.value, str) else None

    def list_items(self, key: str) -> Iterator[Located]:
        """What is in the list under a key; nothing if there is none, or something else."""
        held = self.items.get(key)
        if held is not None and isinstance(held.value, list):
            yield from held.items.values()


def locate(text: str) -> tuple[Located | None, list[Problem]]:
    """The one document of a text, `None` if it is empty, and what is wrong with its parts.

    Aliases and merge keys are written out. A text that is no YAML at all, or that would grow out
    of hand, raises `UnreadableYaml`.
    """
    node = _compose(_without_tabs(text))
    if node is None:
        return None, []
    reading = _Reading(_EXPANSION_BASE + _EXPANSION_FACTOR * len(text))
    located = reading.located(node)
    return located, sorted(reading.problems)


def take_json_numbers(language: type[yaml.SafeLoader] | type[yaml.SafeDumper]) -> None:
    """Make a loader take whatever is a number in JSON for one, or a dumper quote such text.

    PyYAML alone takes `1e3` for text.
    """
    language.add_implicit_resolver(_FLOAT, _NUMBER, list("-+.0123456789"))


class _Loader(yaml.SafeLoader):
    """Composes nodes, to a certain depth only: it calls itself for every level."""

    depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        self.depth += 1
        if self.depth > NESTING_MAX:
            event: Any = self.peek_event()  # type: ignore[no-untyped-call]  # PyYAML's own
            raise UnreadableYaml(_too_deep(event.start_mark))
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


# What looks like a date is text: nothing in a file that is read here is a date.
_Loader.yaml_implicit_resolvers = {
    start: [(tag, shape) for tag, shape in shapes if tag in _KNOWN_TAGS - {_INT, _FLOAT}]
    for start, shapes in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(_INT, _INTEGER, list("-+0123456789"))
take_json_numbers(_Loader)


def _without_tabs(text: str) -> str:
    """The text; if it is JSON, with spaces for the tabs that JSON allows and YAML does not."""
    if "\t" not in text:
        return text
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return text
    # Strings of JSON cannot contain a tab, so it can only stand between two tokens.
    return text.replace("\t", " ")


def _compose(text: str) -> yaml.Node | None:
    try:
        loader = _Loader(text)
        try:
            return loader.get_single_node()
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        raise UnreadableYaml(_syntax_problem(error)) from None
    except yaml.reader.ReaderError as error:
        before = text[: error.position].split("\n")
        what = f"the character U+{error.character:04X} cannot stand here: remove it"
        raise UnreadableYaml(Problem(len(before), len(before[-1]) + 1, what)) from None


def _syntax_problem(error: yaml.MarkedYAMLError) -> Problem:
    mark = error.problem_mark or error.context_mark
    said = ", ".join(part for part in (error.context, error.problem) if part)
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    composed = isinstance(error, yaml.composer.ComposerError)
    advice = _COMPOSITION_ADVICE if composed else _SYNTAX_ADVICE
    return Problem(line, column, f"this cannot be read as YAML ({said}): {advice}")


def _too_deep(mark: yaml.Mark) -> Problem:
    what = f"more than {NESTING_MAX} levels of lists and mappings: make the file flatter"
    return Problem(mark.line + 1, mark.column + 1, what)


class _Reading:
    """Makes values of nodes, and notes what is wrong with single ones of them."""

    def __init__(self, values_max: int) -> None:
        self.problems: set[Problem] = set()
        self._values_left = values_max

    def located(self, node: yaml.Node, depth: int = 1) -> Located:
        """The value of a node. What an alias stands for is read again each time."""
        here = Located(None, node.start_mark.line + 1, node.start_mark.column + 1)
        self._values_left -= 1
        if self._values_left < 0:
            raise UnreadableYaml(
                here.problem("the aliases of this file stand for far too much: write it out")
            )
        if depth > NESTING_MAX:
            raise UnreadableYaml(_too_deep(node.start_mark))
        if node.tag not in _KNOWN_TAGS:
            self.problems.add(here.problem(f"the tag {node.tag} means nothing here: remove it"))
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, here, depth)
        if isinstance(node, yaml.SequenceNode):
            found = [self.located(item, depth + 1) for item in node.value]
            values = [item.value for item in found]
            return Located(values, here.line, here.column, items=dict(enumerate(found)))
        return Located(self._scalar(node, here), here.line, here.column, spelling=node.value)

    def _scalar(self, node: yaml.Node, here: Located) -> Any:
        construct = _SCALARS.get(node.tag)
        if node.tag in (_INT, _FLOAT) and len(node.value) > NUMBER_LENGTH_MAX:
            what = f"{len(node.value)} characters are too many for a number: write a smaller one"
            self.problems.add(here.problem(what))
            return node.value
        try:
            return construct(_CONSTRUCTOR, node) if construct else _joined(node.value)
        except (ValueError, LookupError):
            kind = node.tag.removeprefix(_TAG)
            self.problems.add(
                here.problem(
                    f"{node.value!r} cannot be read as {kind}: write it in quotes, without tag"
                )
            )
            return node.value

    def _mapping(self, node: yaml.MappingNode, here: Located, depth: int) -> Located:
        items: dict[str | int, Located] = {}
        keys: dict[str, Located] = {}
        merged: list[Located] = []
        for key_node, item_node in node.value:
            if key_node.tag == _MERGE:
                merged += self._merged(self.located(item_node, depth + 1))
                continue
            key = self.located(key_node, depth + 1)
            item = self.located(item_node, depth + 1)
            if self._is_usable_key(key, keys):
                keys[key.value], items[key.value] = key, item
        for source in merged:
            for name, item in source.items.items():
                items.setdefault(name, item)
            for name, key in source.keys.items():
                keys.setdefault(name, key)
        values = {key: item.value for key, item in items.items()}
        return Located(values, here.line, here.column, items=items, keys=keys)

    def _is_usable_key(self, key: Located, keys: Mapping[str, Located]) -> bool:
        if not isinstance(key.value, str):
            fix = f': write it in quotes, "{key.spelling}"' if key.spelling else ""
            self.problems.add(key.problem(f"a key must be text{fix}"))
            return False
        if key.value in keys:
            first = keys[key.value].line
            text = f"`{key.value}` stands here twice, first in line {first}: remove one of them"
            self.problems.add(key.problem(text))
            return False
        return True

    def _merged(self, source: Located) -> list[Located]:
        """The mappings that a merge key names; of two the first one counts."""
        sources = list(source.items.values()) if isinstance(source.value, list) else [source]
        if all(isinstance(mapping.value, dict) for mapping in sources):
            return sources
        self.problems.add(source.problem("`<<` takes a mapping, such as *alias, or a list of them"))
        return []


def _joined(text: str) -> str:
    """The text with whole characters where JSON spells those beyond the first 65,536 in halves."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16")
