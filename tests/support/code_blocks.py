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
    for found in _BLOCK.finditer(page.read_text()):
        if found[1] == language:
            yield CodeBlock(found[1], found[2])
