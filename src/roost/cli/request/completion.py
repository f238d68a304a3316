"""Completion of the words of a request in the shell."""

from __future__ import annotations

import re

import click
from click.shell_completion import CompletionItem

from roost.cli.completers import complete_classes, complete_traits
from roost.cli.request.words import RequestWord

WORDS_KEY = "roost.request_words"
"""Where the context of a command has the words of the command line in their order."""

# What stands before the name in a list of traits: `in:A,!B`.
_BEFORE_A_NAME = re.compile(r"(.*[,:!])?(.*)\Z")


def complete_amounts(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Resource classes with the sign before the amount, in the last of several parts."""
    begin, comma, name = incomplete.rpartition(",")
    if "=" in name or ":" in name:
        return []
    return [
        CompletionItem(f"{begin}{comma}{item.value}=")
        for item in complete_classes(ctx, param, name.upper())
    ]


def complete_trait_list(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Traits, behind what a list has already."""
    found = _BEFORE_A_NAME.match(incomplete)
    begin, name = (found[1] or "", found[2]) if found else ("", incomplete)
    return [
        CompletionItem(f"{begin}{item.value}") for item in complete_traits(ctx, param, name.upper())
    ]


def complete_group_names(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The groups that the line has so far."""
    del param
    begin, comma, name = incomplete.rpartition(",")
    words: tuple[RequestWord, ...] = ctx.meta.get(WORDS_KEY, ())
    groups = [word.value for word in words if word.option == "--group"]
    return [
        CompletionItem(f"{begin}{comma}{group}")
        for group in groups
        if group.startswith(name) and group not in begin.split(",")
    ]
