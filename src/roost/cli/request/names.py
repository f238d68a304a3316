"""Names on a server: those in a request become uuids, and misspelt ones get a suggestion."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from roost.cli.request.query_text import QueryPairs
from roost.client.errors import PlacementError, QuestionRefused
from roost.client.lookup import find_uuid
from roost.client.placement.administration import Administration
from roost.model.identifiers import is_uuid
from roost.model.text import nearest_names, own_lines, with_next


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
