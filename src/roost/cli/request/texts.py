"""A whole request in one text, as an option takes it: words, or a query string. Pure."""

from __future__ import annotations

import re
import shlex

from roost.cli.request.argument_order import TakesValue, ordered_words
from roost.cli.request.query_text import UnreadableRequest, pairs_of
from roost.cli.request.words import TypedRequest, read_words

REQUEST_OPTIONS = {
    "--require": TakesValue.ALWAYS,
    "--forbid": TakesValue.ALWAYS,
    "--member-of": TakesValue.ALWAYS,
    "--in-tree": TakesValue.ALWAYS,
    "--in-subtree": TakesValue.ALWAYS,
    "--or": TakesValue.ALWAYS,
    "--group": TakesValue.ALWAYS,
    "--same-subtree": TakesValue.ALWAYS,
    "--apart": TakesValue.ALWAYS,
    "--isolate": TakesValue.NEVER,
    "--group-policy": TakesValue.ALWAYS,
    "--root-require": TakesValue.ALWAYS,
    "--limit": TakesValue.ALWAYS,
}
"""The options that words of a request may have."""

# Names of resource classes are upper case, so no word begins like a parameter.
_QUERY = re.compile(
    r"(?:\A|[?&])(?:(?:or_)?resources|(?:root_)?required|member_of|in_tree|in_subtree|group_policy"
    r"|same_subtree|isolate|limit)[A-Za-z0-9_-]*="
)


def read_request(text: str) -> TypedRequest:
    """The request in a text.

    >>> read_request("VCPU=4 --require CUSTOM_A") == read_request(
    ...     "resources=VCPU:4&required=CUSTOM_A"
    ... )
    True
    """
    if _QUERY.search(text.strip()):
        return TypedRequest(pairs_of(text))
    try:
        parts = shlex.split(text)
    except ValueError as error:
        raise UnreadableRequest(f"{text!r} cannot be split into words: {error}") from None
    words = list(ordered_words(parts, REQUEST_OPTIONS))
    for option, _ in words:
        if option and option not in REQUEST_OPTIONS:
            raise UnreadableRequest(
                f"{text!r} has the option {option}, which is none of a request. Leave it out, or "
                "give it outside the quotes."
            )
    return read_words(words)
