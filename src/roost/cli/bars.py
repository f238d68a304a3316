"""Bars of characters: a part of a whole."""

from __future__ import annotations

from typing import NamedTuple

from rich.console import Console
from rich.text import Text

BAR_WIDTH = 20


class Ink(NamedTuple):
    """The characters of a bar."""

    used: str
    free: str


_BLOCKS = Ink("█", "░")
_ASCII = Ink("#", ".")


def ink_for(console: Console) -> Ink:
    """The characters that a console can show."""
    return _ASCII if console.options.ascii_only else _BLOCKS


def share_bar(share: float, ink: Ink, width: int = BAR_WIDTH, style: str = "") -> Text:
    """A bar of which this share is filled; any part above nothing fills one character.

    >>> share_bar(0.5, Ink("#", "."), 4).plain, share_bar(0.001, Ink("#", "."), 4).plain
    ('##..', '#...')
    """
    filled = max(round(min(1.0, share) * width), 1 if share > 0 else 0)
    bar = Text(ink.used * filled, style=style)
    bar.append(ink.free * (width - filled), style="dim")
    return bar


def usage_bar(used: float, capacity: float, ink: Ink, width: int = BAR_WIDTH) -> Text:
    """A bar whose colour warns at 70 and 90 percent; its length says the same without colour."""
    # What has no capacity is full once something of it is allocated.
    share = min(1.0, used / capacity) if capacity > 0 else float(used > 0)
    filled = round(share * width)
    colour = "red" if share >= 0.9 else "yellow" if share >= 0.7 else "green"
    bar = Text(ink.used * filled, style=f"not bold {colour}")
    bar.append(ink.free * (width - filled), style="not bold dim")
    return bar
