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
