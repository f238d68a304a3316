"""Query strings of candidate queries: written readably, and read from logs. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeAlias
from urllib.parse import parse_qsl, unquote, urlencode

from roost.model.errors import OperatorError

QueryPairs: TypeAlias = tuple[tuple[str, str], ...]

# Servers take these characters in a query string as they are, and people can read them.
_READABLE = ":,!"
# A log line may have a method before the path, a version and a status behind it, and quotes.
_IN_A_LINE = re.compile(r"\?([^\s\"'<>]+)")
_EDGES = " \t\r\n\"'`<>"


class UnreadableRequest(OperatorError):
    """A request that the command cannot turn into a query; the text says why, and what to type."""


def query_string(pairs: Iterable[tuple[str, str]]) -> str:
    """The query string of these pairs, without the characters that confuse readers.

    >>> query_string([("resources", "VCPU:4,MEMORY_MB:8192"), ("required", "!CUSTOM_A")])
    'resources=VCPU:4,MEMORY_MB:8192&required=!CUSTOM_A'
    """
    return urlencode(list(pairs), safe=_READABLE)


def plain_pairs(pairs: QueryPairs) -> QueryPairs:
    """The pairs of a query without what only `GET /roost/candidates` answers.

    >>> plain_pairs((("resources_a", "VCPU:1"), ("in_subtree_a", "x"), ("isolate", "_a")))
    (('resources_a', 'VCPU:1'), ('group_policy', 'isolate'))
    """
    kept = [
        (key, value)
        for key, value in pairs
        if key != "isolate"
        and not key.startswith(("in_subtree", "or_resources"))
        and not (key == "root_required" and value.startswith("in:"))
    ]
    isolated = [set(value.split(",")) for key, value in pairs if key == "isolate"]
    if isolated:
        kept = _with_policy(kept, isolated)
    roots = [pair for pair in kept if pair[0] == "root_required"]
    return tuple(pair for pair in kept if pair not in roots[1:])


def _with_policy(
    pairs: Iterable[tuple[str, str]], isolated: Iterable[set[str]]
) -> list[tuple[str, str]]:
    """The pairs with the group policy that comes nearest to these sets of isolated groups."""
    kept = list(pairs)
    resources = (key.removeprefix("resources") for key, _ in kept if key.startswith("resources"))
    suffixes = {suffix for suffix in resources if suffix}
    policy = "isolate" if any(suffixes <= groups for groups in isolated) else "none"
    if policy == "isolate" or "group_policy" not in dict(kept):
        kept = [pair for pair in kept if pair[0] != "group_policy"]
        kept.append(("group_policy", policy))
    return kept


def pairs_of(text: str) -> QueryPairs:
    """The pairs of a query string, or of a log line that has one.

    >>> pairs_of('"GET /placement/allocation_candidates?limit=5&resources=VCPU%3A4 HTTP/1.1" 200')
    (('limit', '5'), ('resources', 'VCPU:4'))
    """
    found = _IN_A_LINE.search(text)
    query = found[1] if found else text.strip(_EDGES)
    if "=" not in query:
        # Some logs encode the whole query once more.
        query = unquote(query).partition("?")[2] or unquote(query)
    pairs = tuple(parse_qsl(query, keep_blank_values=True))
    if not any("=" in part for part in query.split("&")) or not pairs:
        raise UnreadableRequest(
            f"{text[:80]!r} has no query string. Give the part after the `?` of a request, such as "
            "--from-query 'resources=VCPU:4,MEMORY_MB:8192'"
        )
    return pairs
