"""Words that an operator gives: never empty ones."""

from __future__ import annotations

from typing import Any

import click


class GivenWord(click.ParamType[str]):
    """A text that is not empty: a variable of the shell that is not set must not mean "all"."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The text as it is."""
        if not str(value).strip():
            self.fail("it is empty. Give a value, or leave the option out.", param, ctx)
        return str(value)


WORD = GivenWord()
