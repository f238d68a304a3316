"""Reading YAML and JSON into values with their line and column."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import yaml
from yaml.composer import Composer
from yaml.constructor import SafeConstructor
from yaml.resolver import Resolver

from roost.client.provider_tree import LEVELS_MAX

NESTING_MAX = 2 * LEVELS_MAX + 4
"""How deep lists and mappings may be nested, with aliases written out.

A provider is in a list below its parent, and a field of an inventory is three levels below its
provider.
"""

NUMBER_LENGTH_MAX = 100
"""How many characters a number may have. Python takes minutes for millions of digits."""

TEXT_SHOWN = 200
"""How many characters of the beginning and of the end of a long problem are shown."""

# How many values a text may have with its aliases written out. Without aliases a text has fewer
# values than characters.
_EXPANSION_BASE = 20_000
_EXPANSION_FACTOR = 20

_TAG = "tag:yaml.org,2002:"
_STRING, _MERGE = f"{_TAG}str", f"{_TAG}merge"
_INT, _FLOAT = f"{_TAG}int", f"{_TAG}float"
# The pattern of PyYAML without numbers to base 60: here 1:30 is text.
_INTEGER = re.compile(r"[-+]?(0b[01_]+|0x[0-9a-fA-F_]+|0[0-7_]*|[1-9][0-9_]*)\Z")
_NUMBER = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?\Z")

_CONSTRUCTOR = SafeConstructor()

# Tabs and odd line ends, with which the parser in C takes texts that the one in Python refuses.
_READ_DIFFERENTLY = re.compile("[\t\x85\u2028\u2029\ufeff]")

_SYNTAX_ADVICE = (
    "check the indentation and the brackets, and put quotes around text that has `: ` in it"
    " or begins with one of {[&*!|>%@`"
)
_COMPOSITION_ADVICE = "keep to one document, and define each anchor once and before its aliases"


def _int(constructor: Any, node: Any) -> int:
    if _INTEGER.match(node.value) is None:
        raise ValueError(node.value)
    number: int = SafeConstructor.construct_yaml_int(constructor, node)
    return number


def _float(constructor: Any, node: Any) -> float:
    if _NUMBER.match(node.value) is None:
        raise ValueError(node.value)
    return float(node.value)


_SCALARS: dict[str, Callable[[Any, Any], Any]] = {
    f"{_TAG}null": SafeConstructor.construct_yaml_null,
    f"{_TAG}bool": SafeConstructor.construct_yaml_bool,
    _INT: _int,
    _FLOAT: _float,
}
_KNOWN_TAGS = {*_SCALARS, _STRING, _MERGE, f"{_TAG}seq", f"{_TAG}map"}


@dataclass(frozen=True, slots=True, order=True)
class FileProblem:
    """A problem at one place of a file. Lines and columns count from 1."""

    line: int
    column: int
    text: str

    def in_file(self, name: str) -> str:
        """The problem in one line, with its place in the form that editors understand."""
        text = " ".join(self.text.splitlines())
        if len(text) > 3 * TEXT_SHOWN:
            # The beginning names the problem, and the end has the advice.
            text = f"{text[:TEXT_SHOWN]} ... {text[-TEXT_SHOWN:]}"
        return f"{name}:{self.line}:{self.column}: {text}"


class UnreadableYaml(ValueError):
    """The text is not YAML, or too large with its aliases written out."""

    def __init__(self, problem: FileProblem) -> None:
        self.problem = problem
        super().__init__(problem.text)


@dataclass(frozen=True, slots=True)
class Located:
    """A value with its line and column; a scalar also has its spelling.

    `items` are the values in a list (by index) or in a mapping (by key). `keys` are the keys of a
    mapping with their own places.
    """

    value: Any
    line: int
    column: int
    spelling: str | None = None
    items: Mapping[str | int, Located] = field(default_factory=dict)
    keys: Mapping[str, Located] = field(default_factory=dict)

    def problem(self, text: str) -> FileProblem:
        """A problem at the place of this value."""
        return FileProblem(self.line, self.column, text)

    def text(self, key: str) -> str | None:
        """The text under a key; `None` if the key is missing or has no text."""
        held = self.items.get(key)
        return held.value if held is not None and isinstance(held.value, str) else None

    def list_items(self, key: str) -> Iterator[Located]:
        """The items of the list under a key; none if the key is missing or has no list."""
        held = self.items.get(key)
        if held is not None and isinstance(held.value, list):
            yield from held.items.values()


def decoded(content: bytes) -> str:
    """The text of a file; what is not UTF-8 raises `UnreadableYaml`."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line_start = content.rfind(b"\n", 0, error.start) + 1
        line = content.count(b"\n", 0, line_start) + 1
        what = "this is not UTF-8: save the file as UTF-8"
        problem = FileProblem(line, error.start - line_start + 1, what)
        raise UnreadableYaml(problem) from None


def locate(text: str) -> tuple[Located | None, list[FileProblem]]:
    """The one document of a text, `None` if the text is empty, and the problems of its parts.

    The document has its aliases and merge keys written out. A text that is not YAML, or too large
    with its aliases, raises `UnreadableYaml`.
    """
    node = _compose(_without_tabs(text))
    if node is None:
        return None, []
    reading = _NodeReader(_EXPANSION_BASE + _EXPANSION_FACTOR * len(text))
    located = reading.located(node)
    return located, sorted(reading.problems)


def take_json_numbers(language: type[yaml.SafeLoader] | type[yaml.SafeDumper]) -> None:
    """Make a loader read each number of JSON as a number, or a dumper quote such text.

    Without this PyYAML reads `1e3` as text.
    """
    language.add_implicit_resolver(_FLOAT, _NUMBER, list("-+.0123456789"))


class _LimitedComposer(Composer):
    """Composes nodes to a limited depth, because PyYAML recurses for each level."""

    depth = 0
    # A parser has it.
    peek_event: Callable[[], Any]

    def compose_node(self, parent: Any, index: Any) -> Any:
        self.depth += 1
        if self.depth > NESTING_MAX:
            raise UnreadableYaml(_too_deep(self.peek_event().start_mark))
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


class _Loader(_LimitedComposer, yaml.SafeLoader):
    """Composes nodes with the parser in Python, whose errors name the place best."""


# A tree file contains no dates, so text in the form of a date is text.
_Loader.yaml_implicit_resolvers = {
    start: [(tag, shape) for tag, shape in shapes if tag in _KNOWN_TAGS - {_INT, _FLOAT}]
    for start, shapes in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(_INT, _INTEGER, list("-+0123456789"))
take_json_numbers(_Loader)


def _without_tabs(text: str) -> str:
    """The text; if it is JSON, with spaces for the tabs, which YAML does not allow."""
    if "\t" not in text:
        return text
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return text
    # A string of JSON contains no tab, so each tab is between two tokens.
    return text.replace("\t", " ")


def _compose(text: str) -> yaml.Node | None:
    if yaml.__with_libyaml__ and _READ_DIFFERENTLY.search(text) is None:
        # The parser in C is seven times faster. Its errors have other words, so they do not count.
        with suppress(yaml.YAMLError, UnicodeError):
            return _composed(_c_loader()(text))
    return _composed_in_python(text)


def _composed(loader: Any) -> yaml.Node | None:
    try:
        node: yaml.Node | None = loader.get_single_node()
        return node
    finally:
        loader.dispose()


@cache
def _c_loader() -> Callable[[str], Any]:
    """The class that composes the same nodes with the parser in C, which some machines lack."""

    parser: Any = yaml.cyaml.CParser  # type: ignore[attr-defined]  # The stubs do not export it.

    class CLoader(_LimitedComposer, parser, Resolver):  # type: ignore[misc]  # The same.
        yaml_implicit_resolvers = _Loader.yaml_implicit_resolvers

        def __init__(self, text: str) -> None:
            parser.__init__(self, text)
            Composer.__init__(self)
            Resolver.__init__(self)

    return CLoader


def _composed_in_python(text: str) -> yaml.Node | None:
    try:
        return _composed(_Loader(text))
    except yaml.MarkedYAMLError as error:
        raise UnreadableYaml(_syntax_problem(error)) from None
    except yaml.reader.ReaderError as error:
        before = text[: error.position].split("\n")
        what = f"the character U+{error.character:04X} cannot stand here: remove it"
        raise UnreadableYaml(FileProblem(len(before), len(before[-1]) + 1, what)) from None


def _syntax_problem(error: yaml.MarkedYAMLError) -> FileProblem:
    mark = error.problem_mark or error.context_mark
    description = ", ".join(part for part in (error.context, error.problem) if part)
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    composed = isinstance(error, yaml.composer.ComposerError)
    advice = _COMPOSITION_ADVICE if composed else _SYNTAX_ADVICE
    return FileProblem(line, column, f"this cannot be read as YAML ({description}): {advice}")


def _too_deep(mark: yaml.Mark) -> FileProblem:
    what = (
        f"more than {NESTING_MAX} levels of lists and mappings, which is more than a tree of"
        f" {LEVELS_MAX} levels needs: make the file flatter"
    )
    return FileProblem(mark.line + 1, mark.column + 1, what)


class _NodeReader:
    """Turns nodes into values, and collects the problems of single nodes."""

    def __init__(self, values_max: int) -> None:
        self.problems: set[FileProblem] = set()
        self._values_left = values_max

    def located(self, node: yaml.Node, depth: int = 1) -> Located:
        """The value of a node. The target of an alias is read again for each alias."""
        here = Located(None, node.start_mark.line + 1, node.start_mark.column + 1)
        self._values_left -= 1
        if self._values_left < 0:
            raise UnreadableYaml(
                here.problem("the aliases of this file expand to too many values: write them out")
            )
        if depth > NESTING_MAX:
            raise UnreadableYaml(_too_deep(node.start_mark))
        if node.tag not in _KNOWN_TAGS:
            self.problems.add(here.problem(f"the tag {node.tag} is not known here: remove it"))
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
            text = f"`{key.value}` is here twice, first in line {first}: remove one of them"
            self.problems.add(key.problem(text))
            return False
        return True

    def _merged(self, source: Located) -> list[Located]:
        """The mappings of a merge key, of which an earlier one takes precedence."""
        sources = list(source.items.values()) if isinstance(source.value, list) else [source]
        if all(isinstance(mapping.value, dict) for mapping in sources):
            return sources
        self.problems.add(source.problem("`<<` takes a mapping, such as *alias, or a list of them"))
        return []


def _joined(text: str) -> str:
    """The text with one character for each pair of surrogates, which JSON escapes use."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16")
