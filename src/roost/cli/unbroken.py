"""Drawings whose lines stay whole where the output is no terminal: programs read whole lines."""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment

UNBROKEN_WIDTH = 100_000


@dataclass(frozen=True, slots=True)
class Unbroken:
    """A drawing at the width of the terminal; without one, as wide as its longest line."""

    drawing: RenderableType

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if not console.is_terminal:
            options = options.update(width=UNBROKEN_WIDTH)
        for line in console.render_lines(self.drawing, options, pad=False):
            yield from line
            yield Segment.line()
