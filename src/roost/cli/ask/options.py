"""Commands that take a request: their options, and the request that they get."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click
from click.shell_completion import CompletionItem

from roost.cli.ask.words import (
    POLICIES,
    REQUEST_OPTIONS,
    RequestWord,
    TakesValue,
    TypedRequest,
    UnreadableRequest,
    ordered_words,
    pairs_of,
    read_amounts,
    read_request,
    read_words,
)
from roost.cli.shared.completers import PROVIDER, complete_classes, complete_traits
from roost.cli.shared.parameters import CommandDecorator, adding
from roost.model.text import with_next

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


def unexposed_option(
    name: str, metavar: str | None, sentence: str, **extra: Any
) -> CommandDecorator:
    """An option that may be repeated, and that a command reads from its words in their order."""
    return click.option(
        name, metavar=metavar, multiple=True, expose_value=False, help=sentence, **extra
    )


_TRAITS: dict[str, Any] = {"metavar": "TRAIT", "shell_complete": complete_trait_list}
_GROUP_NAMES: dict[str, Any] = {"metavar": "NAME,NAME", "shell_complete": complete_group_names}

_GROUP_OPTIONS = (
    unexposed_option(
        "--require",
        sentence="Trait that must be there. `A,B` asks for both, `in:A,B` for one of them.",
        **_TRAITS,
    ),
    unexposed_option(
        "--forbid", sentence="Trait that must not be there, as --require '!TRAIT'.", **_TRAITS
    ),
    unexposed_option(
        "--member-of", "UUID", "Aggregate to be in; `in:A,B` for one of them, '!A' for none."
    ),
    unexposed_option("--in-tree", None, "Provider whose tree must give it all.", type=PROVIDER),
    unexposed_option(
        "--group",
        "NAME",
        "Begin a group, which one provider must satisfy. The words and the four options above "
        "belong to it, up to the next --group.",
    ),
)
_OPTIONS_BETWEEN_GROUPS = (
    unexposed_option(
        "--same-subtree", sentence="Groups whose providers are below one of them.", **_GROUP_NAMES
    ),
    click.option(
        "--isolate",
        is_flag=True,
        expose_value=False,
        help="Give each group a provider of its own.",
    ),
    click.option(
        "--group-policy",
        type=click.Choice(POLICIES),
        expose_value=False,
        help="Whether groups share providers. [default: none, which lets them]",
    ),
    unexposed_option(
        "--root-require",
        sentence="Trait that the root of the tree must have; '!TRAIT' must not.",
        **_TRAITS,
    ),
)
_EXTENDED_OPTIONS = (
    unexposed_option(
        "--in-subtree",
        None,
        "Provider below which the group must be. Roost only.",
        type=PROVIDER,
    ),
    unexposed_option(
        "--or",
        "CLASS=AMOUNT,...",
        "Take this in the group if nothing before it is there. Roost only.",
        shell_complete=complete_amounts,
    ),
    unexposed_option(
        "--apart",
        sentence="Groups that share no provider with each other. Roost only.",
        **_GROUP_NAMES,
    ),
)
_REQUEST_OPTIONS = (*_GROUP_OPTIONS, *_OPTIONS_BETWEEN_GROUPS, *_EXTENDED_OPTIONS)
_QUERY_OPTIONS = (
    click.option(
        "--from-query",
        metavar="TEXT",
        help="Take the request from a query string, such as one in a log of Nova.",
    ),
    click.option("--query", "only_query", is_flag=True, help="Print the query string, and end."),
)
_LIMIT_OPTION = click.option(
    "--limit",
    metavar="NUMBER",
    type=click.IntRange(0),
    default=None,
    help="How many candidates to ask for; 0 for all. [default: 20]",
)


class RequestCommand(click.Command):
    """A command whose words and options mean something by their order."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse as click does, and keep the words in their order beside it."""
        options = {
            name: _takes_value(option)
            for option in self.get_params(ctx)
            if isinstance(option, click.Option)
            for name in option.opts
        }
        words = tuple(ordered_words(args, options))
        rest = super().parse_args(ctx, args)
        ctx.meta[WORDS_KEY] = words
        return rest


def _takes_value(option: click.Option) -> TakesValue:
    if option.is_flag:
        return TakesValue.NEVER
    # Such an option stands for this value if it has none of its own.
    has_default = isinstance(option.flag_value, str)
    return TakesValue.UNLESS_OPTION if has_default else TakesValue.ALWAYS


def typed_words() -> tuple[RequestWord, ...]:
    """All options and words of the running command, in their order."""
    words: tuple[RequestWord, ...] = click.get_current_context().meta[WORDS_KEY]
    return words


_WORDS = click.argument(
    "words", metavar="CLASS=AMOUNT...", nargs=-1, shell_complete=complete_amounts
)
request_options = adding(_WORDS, *_REQUEST_OPTIONS, *_QUERY_OPTIONS)
"""Adds the words and options of a request."""

candidate_options = adding(_WORDS, *_REQUEST_OPTIONS, _LIMIT_OPTION, *_QUERY_OPTIONS)
"""The same for a command that shows candidates: with `--limit`."""


claim_options = adding(_WORDS, *_REQUEST_OPTIONS, _QUERY_OPTIONS[0])
"""The same for a command that claims: without `--query`, because it always asks."""


def placed_request(
    option: str, words: Sequence[str], from_query: str | None
) -> tuple[TypedRequest | None, dict[str, dict[str, int]]]:
    """The request of the running command, and the amounts behind each provider of an option.

    The words before the first such option describe the request; it is `None` without any.
    """
    typed = words_of_request(len(words), option)
    begin = next((at for at, word in enumerate(typed) if word.option == option), len(typed))
    with explaining_usage():
        described = bool(begin) or from_query is not None
        request = _request(typed[:begin], from_query) if described else None
        places: dict[str, list[str]] = {}
        for word in typed[begin:]:
            if word.option == option and word.value not in places:
                places[word.value] = []
            elif word.option:
                raise UnreadableRequest(
                    f"{' '.join(word)} stands behind {option}, which takes resources only. "
                    f"Name each provider once, and leave {word.option} out"
                )
            else:
                places[list(places)[-1]].append(word.value)
        return request, {place: read_amounts(amounts) for place, amounts in places.items()}


def typed_request(words: Sequence[str], from_query: str | None, *, is_needed: bool) -> TypedRequest:
    """The request of the running command; an empty one if no word describes it."""
    typed = words_of_request(len(words))
    if not (is_needed or typed or from_query is not None):
        return TypedRequest(())
    with explaining_usage():
        return _request(typed, from_query)


def words_of_request(bare_count: int, *further: str) -> list[RequestWord]:
    """The words of the running command that describe its request, in their order.

    The last `bare_count` bare words belong to it. Those before are arguments of the command itself.
    The words of further options belong to it, too.
    """
    options = {"", *REQUEST_OPTIONS, *further}
    words = [word for word in typed_words() if word.option in options]
    of_command = sum(1 for word in words if not word.option) - bare_count
    kept = []
    for word in words:
        if not word.option and of_command:
            of_command -= 1
        elif word.option != "--limit":
            kept.append(word)
    return kept


def _request(typed: Sequence[RequestWord], from_query: str | None) -> TypedRequest:
    if from_query is None:
        return read_words(typed)
    if typed:
        raise UnreadableRequest(
            f"--from-query has the whole request. Leave out {' '.join(typed[0]).strip()}"
        )
    return TypedRequest(pairs_of(from_query))


@contextmanager
def explaining_usage() -> Iterator[None]:
    """Let the error about a word end with the command that shows how to type it."""
    try:
        yield
    except UnreadableRequest as error:
        path = click.get_current_context().command_path
        raise UnreadableRequest(with_next(str(error), f"{path} --help")) from None


def request_in_text(text: str) -> TypedRequest:
    """The request that the value of an option has."""
    with explaining_usage():
        return read_request(text)
