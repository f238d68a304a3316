"""The prose of the project: docstrings, comments, texts in the code, and pages."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PROJECT = Path(__file__).parents[2]
WORDS_MAX = 24

# Subjects without a name. A component or a role stands in their place.
_NAMELESS = re.compile(
    r"\b(who|whom|whoever|whose\s+is|somebody|someone|nobody|no\s+one|anybody|anyone|everybody|"
    r"everyone|he|him|his|the\s+others?)\b(?!')",
    re.IGNORECASE,
)
# A text with fewer spaces is a name or a piece of syntax.
_TEXT_SPACES_MIN = 2
# Code and quotations count as one word.
_CODE = re.compile(r"`[^`]*`|\"[^\"]*\"")
_SENTENCE_END = re.compile(r"(?<=[.!?:;])(?:\*\*)?\s+|\n\s*\n|\s->\s")

# A number sign inside a string begins no comment. A search is ten times as fast as `tokenize`.
_STRING_OR_COMMENT = re.compile(
    r"""(\"{3}|'{3})(?:\\.|.)*?\1|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\#[^\n]*""", re.DOTALL
)
# Where statements stand inside other statements.
_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")


class Remark(NamedTuple):
    """A sentence that breaks the prose rule."""

    path: Path
    line: int
    reason: str
    sentence: str

    def __str__(self) -> str:
        path = self.path.relative_to(PROJECT)
        return f"{path}:{self.line}: {self.reason}: {self.sentence}"


class Passage(NamedTuple):
    """Sentences that stand together, and the line in which they begin."""

    line: int
    text: str


def remarks_on(path: Path) -> Iterator[Remark]:
    """All sentences of a file that break the prose rule."""
    text = path.read_text()
    if path.suffix == ".py":
        # Texts in tests are data: queries, notations, SQL.
        passages = _python(text, with_texts="tests" not in path.parts)
    else:
        passages = _page(text)
    for line, passage in passages:
        for sentence in _sentences(passage):
            nameless = _NAMELESS.search(_CODE.sub("", sentence))
            if nameless:
                yield Remark(path, line, f"{nameless[0]!r} has no name", sentence)
            elif len(_CODE.sub("x", sentence).split()) > WORDS_MAX:
                yield Remark(path, line, f"more than {WORDS_MAX} words", sentence)


def _python(text: str, *, with_texts: bool) -> Iterator[Passage]:
    tree = ast.parse(text)
    for node in ast.walk(tree) if with_texts else _statements(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield Passage(node.lineno, node.name.replace("_", " "))
        elif isinstance(node, ast.Expr) or with_texts:
            value = getattr(node, "value", None)
            value = value.value if isinstance(value, ast.Constant) else value
            if isinstance(value, str) and value.count(" ") >= _TEXT_SPACES_MIN:
                yield Passage(getattr(node, "lineno", 1), _without_examples(value))
    yield from _comments(text)


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """All statements below a node: a fraction of what `ast.walk` visits."""
    for name in _BLOCKS:
        for statement in getattr(node, name, ()):
            yield statement
            yield from _statements(statement)


def _without_examples(text: str) -> str:
    """A docstring or text without doctests, commands and drawings, which are indented."""
    prose = re.split(r"^\s*>>> ", inspect.cleandoc(text), maxsplit=1, flags=re.MULTILINE)[0]
    return re.sub(r"^(    |  roost ).*$", "", prose, flags=re.MULTILINE).replace("\b", "")


def _comments(text: str) -> Iterator[Passage]:
    """Comments on lines that follow each other are one passage."""
    begin, last, words = 0, 0, ""
    line, counted = 1, 0
    for found in _STRING_OR_COMMENT.finditer(text):
        if not found[0].startswith("#"):
            continue
        line += text.count("\n", counted, found.start())
        counted = found.start()
        comment = found[0].lstrip("#! ")
        before = text[text.rfind("\n", 0, counted) + 1 : counted]
        if line == last + 1 and not before.strip():
            words = f"{words} {comment}"
        else:
            if words:
                yield Passage(begin, words)
            begin, words = line, comment
        last = line
    if words:
        yield Passage(begin, words)


def _page(text: str) -> Iterator[Passage]:
    """The paragraphs of a page, without code and tables."""
    line, block = 1, list[str]()
    fenced = False
    for number, content in enumerate([*text.splitlines(), ""], 1):
        if content.startswith("```"):
            fenced = not fenced
            continue
        is_prose = not fenced and content.strip() and not content.startswith(("    ", "|"))
        if is_prose and not content.lstrip().startswith(("- ", "* ", "#", "> ")):
            if not block:
                line = number
            block.append(content.strip())
            continue
        if block:
            yield Passage(line, " ".join(block))
        line, block = number, [content.strip(" -*#>")] if is_prose else []


def _sentences(passage: str) -> Iterator[str]:
    for sentence in _SENTENCE_END.split(passage):
        plain = " ".join(sentence.split())
        if plain:
            yield plain


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        given = Path(argument).resolve()
        for file in [given] if given.is_file() else sorted(given.rglob("*.py")):
            for remark in remarks_on(file):
                print(remark)
