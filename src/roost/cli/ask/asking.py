"""How a command asks a question: names become uuids, the query is shown, refusals are explained."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial, wraps
from typing import Any

import click
from rich.console import Console

from roost.cli.ask.options import RequestCommand, typed_request
from roost.cli.ask.words import TypedRequest
from roost.cli.shared.bars import is_watching
from roost.cli.shared.command import behind_own, command
from roost.cli.shared.connection import ConnectionSettings, connection_options
from roost.cli.shared.output import OutputForm, output_options
from roost.cli.shared.parameters import CommandDecorator
from roost.cli.shared.terminal import echo_line, plain_line
from roost.cli.shared.watching import present, watch_option
from roost.client.errors import NotOffered, PlacementError, QuestionRefused
from roost.client.ledger.query import QueryPairs, plain_pairs, query_string
from roost.client.placement.placement import Administration
from roost.client.questions import Questions, ServerQuestion
from roost.client.reading.lookup import find_uuid, with_uuids
from roost.model.text import nearest_names, own_lines, with_next

_SHOWN_MAX = 1000


def question_command(
    *, watches: bool = True, needs_request: bool = True
) -> Callable[[Callable[..., Any]], click.Command]:
    """Declare a command that asks a question: a function from `asked` to an `Output`.

    The options of the connection and of the output are behind those of the function itself.
    """

    def declare(function: Callable[..., Any]) -> click.Command:
        @wraps(function)
        def run(
            *,
            connection: ConnectionSettings,
            output: OutputForm,
            watch: float | None = None,
            words: Sequence[str] = (),
            from_query: str | None = None,
            only_query: bool = False,
            **arguments: Any,
        ) -> None:
            request = typed_request(words, from_query, is_needed=needs_request)
            with connection.open() as transport:
                asked = TypedQuestion(Questions(transport), request, output, only_query=only_query)
                present(partial(function, asked=asked, **arguments), output, watch)

        watching: list[CommandDecorator] = [watch_option] if watches else []
        options = (*watching, output_options, connection_options)
        return command(cls=RequestCommand)(behind_own(run, *options))

    return declare


class TypedQuestion:
    """A question on its way to a server."""

    def __init__(
        self, server: Questions, request: TypedRequest, form: OutputForm, *, only_query: bool
    ) -> None:
        self.server = server
        self.form = form
        self._request = request
        self._only_query = only_query
        self._is_told = False
        self._pairs: dict[TypedRequest, QueryPairs] = {}

    @property
    def pairs(self) -> QueryPairs:
        """The pairs of the request, with uuids for names."""
        return self.pairs_of(self._request)

    def pairs_of(self, request: TypedRequest) -> QueryPairs:
        """The pairs of a request with uuids for names; notes go to standard error."""
        if request not in self._pairs:
            for note in request.notes:
                echo_line(note, err=True)
            self._pairs[request] = with_uuids(self.server, request.pairs)
        return self._pairs[request]

    def answer(
        self,
        query: str,
        question: ServerQuestion,
        *,
        sign: str,
        pairs: QueryPairs | None = None,
        providers: Iterable[str] = (),
        elsewhere: Callable[[QueryPairs], str] | None = None,
    ) -> dict[str, Any]:
        """What the server answers; it shows the question before, and `sign` meanwhile.

        A refusal names what the server does not know of pairs and providers, with near names. If
        the server lacks the route, `elsewhere` makes the next command of the request. With
        `--query`, the command prints the query and ends.
        """
        if self._only_query:
            click.echo(query)
            raise click.exceptions.Exit
        if not self._is_told:
            _announce(question)
            self._is_told = True
        try:
            with _waiting(sign):
                return self.server.answer(question)
        except NotOffered as error:
            following = (elsewhere or any_server_command)(self._request.pairs)
            raise error.advising(following) from None
        except QuestionRefused as error:
            if error.status == 404:
                for name_or_uuid in providers:
                    find_uuid(self.server, name_or_uuid)
            raise with_suggestion(self.server, pairs or self.pairs, error) from None


def usage_command(pairs: QueryPairs) -> str:
    """The command that tells how much is used, on any placement server."""
    del pairs
    return "roost usage"


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


def _announce(question: ServerQuestion) -> None:
    """Show what is sent, in standard error, so that pipes get the answer only."""
    sent = f"GET {question.address}"
    if question.body is not None:
        body = json.dumps(question.body)
        # Many claims make a body long.
        shown = body if len(body) <= _SHOWN_MAX else f"{body[:_SHOWN_MAX]} ..."
        sent = f"POST {question.address} {shown}"
    Console(stderr=True, highlight=False).print(plain_line(sent, "dim"), soft_wrap=True)


@contextmanager
def _waiting(what: str) -> Iterator[None]:
    """A sign in the terminal that the server works; silent in pipes, and while watching."""
    console = Console(stderr=True)
    if is_watching() or not console.is_terminal:
        yield
        return
    with console.status(what):
        yield


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
    known = server.known_resource_classes() if named else set[str]()
    return _unknown("resource class", named, known, "roost class list")


def _about_traits(server: Administration, pairs: QueryPairs) -> str | None:
    parts = _parts(pairs, "required", "root_required")
    named = [part.removeprefix("in:").lstrip("!") for part in parts]
    return _unknown("trait", named, server.trait_names(), "roost trait list") if named else None


def _parts(pairs: QueryPairs, *keys: str) -> Iterator[str]:
    for name, value in pairs:
        if name.startswith(keys):
            yield from value.split(",")


def _unknown(noun: str, named: Iterable[str], known: set[str], command: str) -> str | None:
    """A sentence for each name that the server does not know, and the next command.

    The command lists the names. It explains the noun if no known name is near.
    """
    unknown = [name for name in dict.fromkeys(named) if name not in known]
    near = {name: nearest_names(name, known) for name in unknown}
    sentences = [
        f"The server knows no {noun} {name}."
        + (f" Near it: {', '.join(near[name])}." if near[name] else "")
        for name in unknown
    ]
    following = command if any(near.values()) else f"roost help {noun}"
    return with_next(own_lines(*sentences), following) if sentences else None
