"""Whole trees in one answer, which Roost has; on other servers a reader walks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from http import HTTPStatus
from itertools import chain

from roost.client.errors import NotOffered, QuestionRefused, UnreadableAnswer
from roost.client.placement import Placement
from roost.client.placement.answers import inventories_in
from roost.client.questions import Json, Questions, ask_tree, ask_trees
from roost.client.reading.cloud_provider import CloudProvider, CloudTree

NO_TREE = CloudTree((), ())

# A policy may allow each provider, but not this answer. A tree may grow while the server reads it.
_WALKED_AFTER = (HTTPStatus.FORBIDDEN, HTTPStatus.CONFLICT)


class WholeTrees:
    """The trees of one server. An answer of `None` means: walk, for the server has no such list."""

    def __init__(self, server: Placement) -> None:
        self._server = server if isinstance(server, Questions) else None

    def all(self) -> Iterator[CloudTree] | None:
        """All trees, some at a time."""
        if self._server is None:
            return None
        rows = self._server.rows(ask_trees())
        try:
            first = list(next_of(rows))
        except (NotOffered, QuestionRefused) as error:
            self._demand_walkable(error)
            return None
        return map(_tree, chain(first, rows))

    def of(self, uuid: str) -> CloudTree | None:
        """The tree of a provider; an empty one if the server does not have the provider."""
        if self._server is None:
            return None
        try:
            return _tree(self._server.answer(ask_tree(uuid)))
        except (NotOffered, QuestionRefused) as error:
            if error.status == HTTPStatus.NOT_FOUND and not isinstance(error, NotOffered):
                return NO_TREE
            self._demand_walkable(error)
            return None

    def _demand_walkable(self, error: NotOffered | QuestionRefused) -> None:
        """Raise the error, unless single requests may succeed; ask a server without trees once."""
        if isinstance(error, NotOffered):
            self._server = None
        elif error.status not in _WALKED_AFTER:
            raise error


def next_of(rows: Iterator[Json]) -> Iterator[Json]:
    """The next row, if there is one."""
    for row in rows:
        yield row
        return


def _tree(row: Json) -> CloudTree:
    """A tree of an answer. Children name their parent, and names are unique."""
    members = _parents_first(row["providers"])
    uuids = {its["name"]: its["uuid"] for its in members}
    root = members[0]["uuid"]
    return CloudTree(
        tuple(_provider(its, uuids.get(its.get("parent")), root) for its in members),
        # The tree of a sharing provider is another one, which the answer does not have.
        tuple(_provider(its, None, its["uuid"]) for its in row["sharing_providers"]),
    )


def _parents_first(providers: list[Json]) -> list[Json]:
    children: dict[str | None, list[Json]] = defaultdict(list)
    for its in providers:
        children[its.get("parent")].append(its)
    found = children[None][:]
    for its in found:
        found += children.pop(its["name"], ())
    if len(children[None]) != 1 or len(found) != len(providers):
        raise UnreadableAnswer("The server sent providers that are no tree; is it a Roost server?")
    return found


def _provider(its: Json, parent: str | None, root: str) -> CloudProvider:
    body = {
        "uuid": its["uuid"],
        "name": its["name"],
        "generation": its["generation"],
        "parent_provider_uuid": parent,
        "root_provider_uuid": root,
    }
    return CloudProvider(
        body,
        inventories_in(its["inventories"]),
        frozenset(its["aggregates"]),
        frozenset(its["traits"]),
        its["usages"],
    )
