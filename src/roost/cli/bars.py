"""Bars in the terminal, in blocks or, where the terminal lacks them, in ASCII."""

from __future__ import annotations

from typing import NamedTuple

from rich.console import ConsoleOptions
from rich.text import Text


class Ink(NamedTuple):
    """The characters of a bar."""

    filled: str
    empty: str


_BLOCKS = Ink("█", "░")
_ASCII = Ink("#", ".")


def ink_of(options: ConsoleOptions) -> Ink:
    """The characters that a terminal can show."""
    return _ASCII if options.ascii_only else _BLOCKS


def bar(share: float, width: int, ink: Ink, style: str = "") -> Text:
    """A bar of which this share is filled; any part above nothing fills one character.

    >>> bar(0.5, 4, Ink("#", ".")).plain, bar(0.001, 4, Ink("#", ".")).plain
    ('##..', '#...')
    """
    filled = round(min(1.0, share) * width)
    if share > 0:
        filled = max(1, filled)
    drawn = Text(ink.filled * filled, style=style)
    drawn.append(ink.empty * (width - filled), style="dim")
    return drawn
