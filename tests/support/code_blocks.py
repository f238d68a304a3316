"""The fenced code blocks of a page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class CodeBlock:
    """The text between two fences."""

    language: str
    text: str


def code_blocks(page: Path, language: str) -> Iterator[CodeBlock]:
    """The blocks in this language, in their order."""
    for block in all_code_blocks(page.read_text()):
        if block.language == language:
            yield block


def all_code_blocks(text: str) -> Iterator[CodeBlock]:
    """All blocks of a text, in their order."""
    for found in _BLOCK.finditer(text):
        yield CodeBlock(found[1], found[2])


def write_modules(page: Path, directory: Path) -> None:
    """Write each block that begins with `# some_name.py` into a file of that name."""
    for block in code_blocks(page, "python"):
        first_line = block.text.partition("\n")[0]
        if first_line.endswith(".py"):
            (directory / first_line.removeprefix("# ")).write_text(block.text)


def conversation(block: CodeBlock) -> list[tuple[str, str]]:
    """The commands of a console, each with what it prints."""
    parts = ("\n" + block.text).split("\n$ ")[1:]
    return [
        (command, printed + "\n" if printed else "")
        for command, _, printed in (part.rstrip("\n").partition("\n") for part in parts)
    ]
