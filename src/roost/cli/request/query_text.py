"""Query strings of candidate queries: written readably, read from logs, with names of a server."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TypeAlias
from urllib.parse import parse_qsl, unquote, urlencode

from roost.client.errors import PlacementError, QuestionRefused
from roost.client.lookup import find_uuid
from roost.client.placement.placement import Administration
from roost.model.errors import OperatorError
from roost.model.identifiers import is_uuid
from roost.model.text import nearest_names, own_lines, with_next

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


def with_uuids(server: Administration, pairs: QueryPairs) -> QueryPairs:
    """The pairs with a uuid in place of each name of a provider."""
    return tuple(
        (key, find_uuid(server, value))
        if key.startswith(("in_tree", "in_subtree")) and not is_uuid(value)
        else (key, value)
        for key, value in pairs
    )


def with_suggestion(
    server: Administration, pairs: QueryPairs, error: QuestionRefused
) -> QuestionRefused:
    """The refusal of a request; it names classes and traits that the server does not know."""
    try:
        found = _about_classes(server, pairs) or _about_traits(server, pairs)
    except PlacementError:
        # The refusal itself says more than a failure to read the names.
        found = None
    return error if found is None else QuestionRefused(found)


def _about_classes(server: Administration, pairs: QueryPairs) -> str | None:
    named = [part.partition(":")[0] for part in _parts(pairs, "resources", "or_resources")]
    return _unknown("resource class", named, server.known_resource_classes(), "roost class list")


def _about_traits(server: Administration, pairs: QueryPairs) -> str | None:
    parts = _parts(pairs, "required", "root_required")
    named = [part.removeprefix("in:").lstrip("!") for part in parts]
    return _unknown("trait", named, server.trait_names(), "roost trait list") if named else None


def _parts(pairs: QueryPairs, *keys: str) -> Iterator[str]:
    for name, value in pairs:
        if name.startswith(keys):
            yield from value.split(",")


def _unknown(noun: str, named: Iterable[str], known: set[str], command: str) -> str | None:
    """A sentence for each name that the server does not know, and the command that lists them."""
    sentences = []
    for name in dict.fromkeys(named):
        if name not in known:
            near = nearest_names(name, known)
            advice = f" Near it: {', '.join(near)}." if near else ""
            sentences.append(f"The server knows no {noun} {name}.{advice}")
    return with_next(own_lines(*sentences), command) if sentences else None
