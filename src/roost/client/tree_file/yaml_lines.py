"""Reading YAML and JSON into values with their line and column."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import yaml
from yaml.constructor import SafeConstructor

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
_STRING, _LIST, _MAPPING = f"{_TAG}str", f"{_TAG}seq", f"{_TAG}map"
_NULL, _BOOL, _MERGE = f"{_TAG}null", f"{_TAG}bool", f"{_TAG}merge"
_INT, _FLOAT = f"{_TAG}int", f"{_TAG}float"
_NUMBERS = {
    # The pattern of PyYAML without numbers to base 60: here 1:30 is text.
    _INT: re.compile(r"[-+]?(0b[01_]+|0x[0-9a-fA-F_]+|0[0-7_]*|[1-9][0-9_]*)\Z"),
    _FLOAT: re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?\Z"),
}

_SYNTAX_ADVICE = (
    "check the indentation and the brackets, and put quotes around text that has `: ` in it"
    " or begins with one of {[&*!|>%@`"
)
_COMPOSITION_ADVICE = "keep to one document, and define each anchor once and before its aliases"


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


class _Unreadable(ValueError):
    """A problem that leaves no value to read."""

    def __init__(self, problem: FileProblem) -> None:
        self.problem = problem
        super().__init__(problem.text)


@dataclass(frozen=True)
class Located:
    """A value, and the node of the file that it stands in."""

    value: Any
    node: Any

    @property
    def line(self) -> int:
        """The line of the value, from 1."""
        return int(self.node.start_mark.line) + 1

    @property
    def spelling(self) -> str | None:
        """How the file spells a scalar; `None` for lists and mappings."""
        return self.node.value if isinstance(self.node, yaml.ScalarNode) else None

    @cached_property
    def items(self) -> Mapping[str | int, Located]:
        """The values in a list by index, or in a mapping by key."""
        if isinstance(self.value, list):
            return dict(enumerate(map(Located, self.value, self.node.value)))
        if isinstance(self.value, dict):
            return {
                key.value: Located(self.value[key.value], node) for key, node in self.node.value
            }
        return {}

    @property
    def keys(self) -> Mapping[str, Located]:
        """The keys of a mapping with their own places."""
        return {key.value: Located(key.value, key) for key, _ in self.node.value}

    def problem(self, text: str) -> FileProblem:
        """A problem at the place of this value."""
        return _problem_at(self.node.start_mark, text)

    def text(self, key: str) -> str | None:
        """The text under a key; `None` if the key is missing or has no text."""
        held = self.items.get(key)
        return held.value if held is not None and isinstance(held.value, str) else None

    def list_items(self, key: str) -> Iterator[Located]:
        """The items of the list under a key; none if the key is missing or has no list."""
        held = self.items.get(key)
        if held is not None and isinstance(held.value, list):
            yield from held.items.values()


def locate(content: bytes | str) -> tuple[Located | None, list[FileProblem]]:
    """The one document of a file, with its aliases and merge keys written out, and its problems.

    The document is `None` if the file is empty, and if the only problem leaves nothing to read:
    the file is not YAML, or too large with its aliases.
    """
    try:
        text = content if isinstance(content, str) else _decoded(content)
        loader = _loader(_without_tabs(text))
        node = loader.get_single_node()
        if node is None:
            return None, []
        loader.demand_bounds(node)
        value = loader.construct_document(node)
    except _Unreadable as error:
        return None, [error.problem]
    except yaml.MarkedYAMLError as error:
        return None, [_syntax_problem(error)]
    return None if value is None else Located(value, node), sorted(loader.problems)


def take_json_numbers(language: type[yaml.SafeLoader] | type[yaml.SafeDumper]) -> None:
    """Make a loader read each number of JSON as a number, or a dumper quote such text.

    Without this PyYAML reads `1e3` as text.
    """
    language.add_implicit_resolver(_FLOAT, _NUMBERS[_FLOAT], list("-+.0123456789"))


class _Loader(yaml.SafeLoader):
    """Composes nodes and makes values of them; collects the problems of single nodes.

    The parser is the one in Python: its errors name the place best, and it knows the pairs of
    surrogates of JSON.
    """

    # A tree file contains no dates, so text in the form of a date is text.
    yaml_implicit_resolvers = {  # noqa: RUF012  # The annotation of PyYAML.
        start: [(tag, shape) for tag, shape in shapes if tag in (_NULL, _BOOL, _MERGE)]
        for start, shapes in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.problems: set[FileProblem] = set()
        self._values_left = _EXPANSION_BASE + _EXPANSION_FACTOR * len(text)
        self._depth = 0
        self._flat: set[yaml.Node] = set()

    def compose_node(self, parent: Any, index: Any) -> Any:
        """The next node. PyYAML recurses for each level, so the depth is limited."""
        self._depth += 1
        if self._depth > NESTING_MAX:
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]  # The stubs lack it.
            raise _Unreadable(_too_deep(mark))
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def demand_bounds(self, node: Any, depth: int = 1) -> None:
        """Raise an error if a node is too deep or too large with its aliases written out."""
        self._values_left -= 1
        if self._values_left < 0:
            what = "the aliases of this file expand to too many values: write them out"
            raise _Unreadable(_problem_at(node.start_mark, what))
        if depth > NESTING_MAX:
            raise _Unreadable(_too_deep(node.start_mark))
        if isinstance(node, yaml.CollectionNode):
            is_mapping = isinstance(node, yaml.MappingNode)
            for part in chain.from_iterable(node.value) if is_mapping else node.value:
                self.demand_bounds(part, depth + 1)

    def flatten_mapping(self, node: Any) -> None:
        """Leave the pairs of a mapping that can be used, and then those of its merge keys."""
        if node in self._flat:
            return
        self._flat.add(node)
        pairs: dict[str, tuple[Any, Any]] = {}
        merged: list[Any] = []
        for key_node, item_node in node.value:
            if key_node.tag == _MERGE:
                merged += self._merged(item_node)
                continue
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, str) and key not in pairs:
                key_node.value = key
                pairs[key] = (key_node, item_node)
                continue
            if isinstance(key, str):
                line = pairs[key][0].start_mark.line + 1
                what = f"`{key}` is here twice, first in line {line}: remove one of them"
            else:
                spelt = isinstance(key_node, yaml.ScalarNode) and key_node.value
                what = "a key must be text" + (f': write it in quotes, "{spelt}"' if spelt else "")
            self._report(key_node, what)
            # The value may have problems of its own.
            self.construct_object(item_node, deep=True)
        for source in merged:
            self.flatten_mapping(source)
            for key_node, item_node in source.value:
                pairs.setdefault(key_node.value, (key_node, item_node))
        node.value = list(pairs.values())

    def _merged(self, node: Any) -> list[Any]:
        """The mappings of a merge key, of which an earlier one takes precedence."""
        sources = node.value if isinstance(node, yaml.SequenceNode) else [node]
        if all(isinstance(source, yaml.MappingNode) for source in sources):
            return list(sources)
        self._report(node, "`<<` takes a mapping, such as *alias, or a list of them")
        return []

    def construct_text(self, node: Any) -> str:
        """The text with one character for each pair of surrogates, which JSON escapes use."""
        text: str = self.construct_scalar(node)
        return text.encode("utf-16", "surrogatepass").decode("utf-16")

    def construct_any(self, node: Any) -> Any:
        """The value of a node; that without its tag, if its text cannot have the type."""
        readers = _READERS[node.id]
        if node.tag not in readers:
            self._report(node, f"the tag {node.tag} is not known here: remove it")
            node.tag = next(iter(readers))
        shape = _NUMBERS.get(node.tag)
        if shape is not None and len(node.value) > NUMBER_LENGTH_MAX:
            what = f"{len(node.value)} characters are too many for a number: write a smaller one"
            self._report(node, what)
            return node.value
        try:
            if shape is not None and shape.match(node.value) is None:
                raise ValueError(node.value)
            return readers[node.tag](self, node)
        except (ValueError, LookupError):
            what = f"{node.value!r} cannot be read as {node.tag.removeprefix(_TAG)}"
            self._report(node, f"{what}: write it in quotes, without tag")
            return node.value

    def _report(self, node: yaml.Node, text: str) -> None:
        self.problems.add(_problem_at(node.start_mark, text))


_READERS: dict[str, dict[str, Callable[[Any, Any], Any]]] = {
    "scalar": {
        _STRING: _Loader.construct_text,
        _MERGE: _Loader.construct_text,
        _NULL: SafeConstructor.construct_yaml_null,
        _BOOL: SafeConstructor.construct_yaml_bool,
        _INT: SafeConstructor.construct_yaml_int,
        _FLOAT: SafeConstructor.construct_yaml_float,
    },
    "sequence": {_LIST: SafeConstructor.construct_yaml_seq},
    "mapping": {_MAPPING: SafeConstructor.construct_yaml_map},
}
"""The readers of each kind of node by their tags; the first one reads a node without tag."""
_Loader.yaml_constructors = {None: _Loader.construct_any}
_Loader.add_implicit_resolver(_INT, _NUMBERS[_INT], list("-+0123456789"))
take_json_numbers(_Loader)


def _decoded(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line_start = content.rfind(b"\n", 0, error.start) + 1
        line = content.count(b"\n", 0, line_start) + 1
        what = "this is not UTF-8: save the file as UTF-8"
        raise _Unreadable(FileProblem(line, error.start - line_start + 1, what)) from None


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


def _loader(text: str) -> _Loader:
    try:
        return _Loader(text)
    except yaml.reader.ReaderError as error:
        before = text[: error.position].split("\n")
        what = f"the character U+{error.character:04X} cannot stand here: remove it"
        raise _Unreadable(FileProblem(len(before), len(before[-1]) + 1, what)) from None


def _problem_at(mark: yaml.Mark, text: str) -> FileProblem:
    return FileProblem(mark.line + 1, mark.column + 1, text)


def _syntax_problem(error: yaml.MarkedYAMLError) -> FileProblem:
    description = ", ".join(part for part in (error.context, error.problem) if part)
    composed = isinstance(error, yaml.composer.ComposerError)
    advice = _COMPOSITION_ADVICE if composed else _SYNTAX_ADVICE
    mark = error.problem_mark or error.context_mark or yaml.Mark("", 0, 0, 0, None, 0)
    return _problem_at(mark, f"this cannot be read as YAML ({description}): {advice}")


def _too_deep(mark: yaml.Mark) -> FileProblem:
    what = (
        f"more than {NESTING_MAX} levels of lists and mappings, which is more than a tree of"
        f" {LEVELS_MAX} levels needs: make the file flatter"
    )
    return _problem_at(mark, what)
