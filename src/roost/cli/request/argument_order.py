"""The words of a command line in their order, which click does not keep. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum

from roost.cli.request.words import RequestWord


class TakesValue(Enum):
    """Whether an option takes the next argument as its value."""

    NEVER = "never"
    ALWAYS = "always"
    # Unless the next argument is an option.
    UNLESS_OPTION = "unless option"


def ordered_words(
    arguments: Sequence[str], options: Mapping[str, TakesValue]
) -> Iterator[RequestWord]:
    """Each option with its value, and each bare word, of a command line that click has accepted.

    >>> options = {"--group": TakesValue.ALWAYS, "--isolate": TakesValue.NEVER}
    >>> found = ordered_words(["A=1", "--group", "x", "--isolate", "B=2"], options)
    >>> [tuple(word) for word in found]
    [('', 'A=1'), ('--group', 'x'), ('--isolate', ''), ('', 'B=2')]
    """
    position = 0
    while position < len(arguments):
        argument = arguments[position]
        position += 1
        if argument == "--":
            yield from (RequestWord("", word) for word in arguments[position:])
            return
        if not _is_option(argument):
            yield RequestWord("", argument)
            continue
        option, equals, value = argument.partition("=")
        following = arguments[position : position + 1]
        if not equals and following and _takes(options.get(option), following[0]):
            value = following[0]
            position += 1
        yield RequestWord(option, value)


def _takes(takes: TakesValue | None, following: str) -> bool:
    if takes is TakesValue.UNLESS_OPTION:
        return not _is_option(following)
    return takes is TakesValue.ALWAYS


def _is_option(argument: str) -> bool:
    """Whether an argument is an option; a dash alone is a word."""
    return len(argument) > 1 and argument.startswith("-")
