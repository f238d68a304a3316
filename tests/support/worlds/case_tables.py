"""Tables of worlds, requests and answers, one test for each row.

    World: H(VCPU 4), N<H(MEM 4)

    VCPU:1                | H
    ... required=T1       | none
    MEM:1                 | N                     | H, N
    resources_1=VCPU:1&resources_2=MEM:1&group_policy=none
        | H[VCPU:1] N[MEM:1] {_1=H _2=N}

A row has a request, an answer and, if it matters, the names of the providers in the summaries.
`...` stands for the last complete request and an `&`. An indented line continues the line before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from textwrap import dedent

import pytest

from support.worlds.world import LATEST, World

_WORLD = "World: "
_AS_BEFORE = "..."


@dataclass(frozen=True)
class Case:
    """A row of a table."""

    world: str
    query: str
    answer: str
    summaries: str | None = None

    def hold(self, world: World, version: str = LATEST) -> None:
        """Fail unless the answer of the API is that of the row."""
        world.expect(self.query, self.answer, self.summaries, version)


def table(text: str) -> pytest.MarkDecorator:
    """Run a test for each row, as `case`."""
    cases = [Case(*row) for row in rows(text)]
    return pytest.mark.parametrize("case", [pytest.param(case, id=case.query) for case in cases])


def rows(text: str) -> list[tuple[str, ...]]:
    """The world, the request and the further cells of each row.

    >>> rows('''
    ...     World: H(VCPU 4)
    ...     VCPU:1  | H
    ...     ... required=T1
    ...         | none
    ... ''')
    [('H(VCPU 4)', 'VCPU:1', 'H'), ('H(VCPU 4)', 'VCPU:1&required=T1', 'none')]
    """
    found = []
    world = full_request = ""
    for line in _lines(text):
        if line.startswith(_WORLD):
            world = line.removeprefix(_WORLD)
            continue
        request, *cells = (cell.strip() for cell in line.split("|"))
        # A request may continue in the next line.
        request = request.replace(" &", "&")
        if request.startswith(_AS_BEFORE):
            request = f"{full_request}&{request.removeprefix(_AS_BEFORE).strip()}"
        else:
            full_request = request
        found.append((world, request, *cells))
    return found


def _lines(text: str) -> Iterator[str]:
    """The lines that are not empty, each with its continuation lines."""
    whole = ""
    for line in dedent(text).splitlines():
        if line.startswith(" "):
            whole += f" {line.strip()}"
            continue
        if whole:
            yield whole
        whole = line.strip()
    if whole:
        yield whole
