"""How a command asks a question: names become uuids, the query is shown, refusals are explained."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console

from roost.cli.connection import ConnectionSettings
from roost.cli.request.query_text import (
    QueryPairs,
    plain_pairs,
    query_string,
    with_suggestion,
    with_uuids,
)
from roost.cli.request.words import TypedRequest
from roost.cli.terminal import echo_line, plain_line
from roost.client.errors import NotOffered, QuestionRefused
from roost.client.lookup import find_uuid
from roost.client.questions import Questions, ServerQuestion
from roost.model.text import with_next

_NOT_OFFERED = "This server is no Roost server, or an older one: it does not offer {path}."


@contextmanager
def asking(connection: ConnectionSettings, next_command: str) -> Iterator[Questions]:
    """The server to ask. A server that lacks the route gets the next command to type."""
    with connection.open() as transport:
        try:
            yield Questions(transport)
        except NotOffered as error:
            text = _NOT_OFFERED.format(path=error.path)
            raise NotOffered(with_next(text, next_command), error.path) from None


def ready_pairs(server: Questions, request: TypedRequest) -> QueryPairs:
    """The pairs of a request with uuids for names; notes go to standard error."""
    for note in request.notes:
        echo_line(note, err=True)
    return with_uuids(server, request.pairs)


def announce(what: str) -> None:
    """Show what is sent, in standard error, so that pipes get the answer only."""
    Console(stderr=True, highlight=False).print(plain_line(what, "dim"), soft_wrap=True)


def any_server_command(pairs: QueryPairs) -> str:
    """The command that asks for the same candidates on any placement server."""
    return f"roost candidates --from-query {shlex.quote(query_string(plain_pairs(pairs)))}"


def room_command(pairs: QueryPairs) -> str:
    """The command that lists the providers with room for the first resource of a request.

    >>> room_command((("resources_a", "VCPU:4,MEMORY_MB:1024"),))
    'roost provider list --resources VCPU=4'
    """
    for key, value in pairs:
        if key.startswith("resources"):
            first = value.partition(",")[0].replace(":", "=")
            return f"roost provider list --resources {shlex.quote(first)}"
    return "roost provider list"


def answered(
    server: Questions,
    pairs: QueryPairs,
    question: ServerQuestion,
    providers: Iterable[str] = (),
) -> dict[str, Any]:
    """The answer to a question; a refusal names what the server does not know, with near names."""
    try:
        return server.answer(question)
    except QuestionRefused as error:
        if error.status == 404:
            for name_or_uuid in providers:
                find_uuid(server, name_or_uuid)
        raise with_suggestion(server, pairs, error) from None


@contextmanager
def waiting(what: str, *, quiet: bool = False) -> Iterator[None]:
    """A sign in the terminal that the server works; silent in pipes, and while watching."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield
        return
    with console.status(what):
        yield
