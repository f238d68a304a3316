"""Commands that take a request: their options, and the request that they get."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any

import click

from roost.cli.completers import complete_providers
from roost.cli.request.argument_order import TakesValue, ordered_words
from roost.cli.request.completion import (
    WORDS_KEY,
    complete_amounts,
    complete_group_names,
    complete_trait_list,
)
from roost.cli.request.query_text import UnreadableRequest, pairs_of
from roost.cli.request.texts import REQUEST_OPTIONS, read_request
from roost.cli.request.words import POLICIES, RequestWord, TypedRequest, read_words
from roost.cli.usage_status import usage_status
from roost.cli.words import WORD
from roost.model.text import with_next

EXIT_UNKNOWN = 1
"""The exit status after an error: the command does not know the answer."""

EXIT_NONE = 2
"""The exit status of an answer that the operator did not hope for: no candidate, no room."""

_GROUP_OPTIONS = (
    click.option(
        "--require",
        metavar="TRAIT",
        multiple=True,
        shell_complete=complete_trait_list,
        expose_value=False,
        help="Trait that must be there. `A,B` asks for both, `in:A,B` for one of them.",
    ),
    click.option(
        "--forbid",
        metavar="TRAIT",
        multiple=True,
        shell_complete=complete_trait_list,
        expose_value=False,
        help="Trait that must not be there, as --require '!TRAIT'.",
    ),
    click.option(
        "--member-of",
        metavar="UUID",
        multiple=True,
        expose_value=False,
        help="Aggregate to be in; `in:A,B` for one of them, '!A' for none.",
    ),
    click.option(
        "--in-tree",
        type=WORD,
        metavar="NAME_OR_UUID",
        multiple=True,
        shell_complete=complete_providers,
        expose_value=False,
        help="Provider whose tree must give it all.",
    ),
    click.option(
        "--group",
        metavar="NAME",
        multiple=True,
        expose_value=False,
        help="Begin a group, which one provider must satisfy. The words and the four options above "
        "belong to it, up to the next --group.",
    ),
)
_OPTIONS_BETWEEN_GROUPS = (
    click.option(
        "--same-subtree",
        metavar="NAME,NAME",
        multiple=True,
        shell_complete=complete_group_names,
        expose_value=False,
        help="Groups whose providers are below one of them.",
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
    click.option(
        "--root-require",
        metavar="TRAIT",
        multiple=True,
        shell_complete=complete_trait_list,
        expose_value=False,
        help="Trait that the root of the tree must have; '!TRAIT' must not.",
    ),
)
_EXTENDED_OPTIONS = (
    click.option(
        "--in-subtree",
        type=WORD,
        metavar="NAME_OR_UUID",
        multiple=True,
        shell_complete=complete_providers,
        expose_value=False,
        help="Provider below which the group must be. Roost only.",
    ),
    click.option(
        "--or",
        metavar="CLASS=AMOUNT,...",
        multiple=True,
        shell_complete=complete_amounts,
        expose_value=False,
        help="Take this in the group if nothing before it is there. Roost only.",
    ),
    click.option(
        "--apart",
        metavar="NAME,NAME",
        multiple=True,
        shell_complete=complete_group_names,
        expose_value=False,
        help="Groups that share no provider with each other. Roost only.",
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


class RequestCommand(usage_status(EXIT_UNKNOWN)):  # type: ignore[misc]  # a class that is made
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
        rest: list[str] = super().parse_args(ctx, args)
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


def request_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the words and options of a request, which the command gets as `request`."""
    return _with_request(command, (*_REQUEST_OPTIONS, *_QUERY_OPTIONS))


def candidate_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The same for a command that shows candidates: with `--limit`."""
    return _with_request(command, (*_REQUEST_OPTIONS, _LIMIT_OPTION, *_QUERY_OPTIONS))


def optional_request_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The same for a command that also works without: its `request` is then `None`."""
    return _with_request(command, (*_REQUEST_OPTIONS, *_QUERY_OPTIONS), optional=True)


def _with_request(
    command: Callable[..., Any], options: Sequence[Callable[..., Any]], *, optional: bool = False
) -> Callable[..., Any]:
    @wraps(command)
    def with_request(*, words: Sequence[str], from_query: str | None, **arguments: Any) -> Any:
        typed = words_of_request(len(words))
        if optional and not typed and from_query is None:
            return command(request=None, **arguments)
        with explaining_usage():
            request = _request(typed, from_query)
        return command(request=request, **arguments)

    wrapped: Callable[..., Any] = with_request
    for option in reversed(options):
        wrapped = option(wrapped)
    return click.argument(
        "words", metavar="CLASS=AMOUNT...", nargs=-1, shell_complete=complete_amounts
    )(wrapped)


def words_of_request(bare_count: int) -> list[RequestWord]:
    """The words of the running command that describe its request, in their order.

    The last `bare_count` bare words belong to it. Those before are arguments of the command itself.
    """
    words = [word for word in typed_words() if not word.option or word.option in REQUEST_OPTIONS]
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
