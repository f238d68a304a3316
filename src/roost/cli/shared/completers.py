"""Completion of names in the shell: providers, traits and resource classes of the server.

A server that is down, slow or refuses completes nothing, without a word. The names of owners come
from the records on this machine.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from contextlib import redirect_stderr
from dataclasses import fields
from http import HTTPStatus
from threading import Thread
from typing import Any

import click
from click.shell_completion import CompletionItem

from roost.cli.shared.connection import ConnectionSettings, complete_contexts
from roost.cli.shared.parameters import GivenWord
from roost.client.errors import NotOffered, PlacementError, QuestionRefused
from roost.client.ownership.store import default_directory, owners_in
from roost.client.placement import ProviderBody
from roost.client.questions import Questions, ask_roots, ask_tree

SECONDS_IN_ALL = 1.0
"""How long a shell waits for the names: for the connection and all requests together."""

_NAMES_MAX = 1000
"""The number of names that a shell is offered at most."""

_UUID_BEGINNING = re.compile(r"[0-9a-fA-F-]{4,36}\Z")
_WORD_END = re.compile(r"[^A-Za-z0-9][A-Za-z0-9]*\Z")

_Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def complete_providers(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Names of providers, with their uuids as help; uuids if the word begins like one."""
    del param
    bodies = _asked(ctx, lambda server: _providers(server, incomplete))
    by_name = [
        CompletionItem(body["name"], help=body["uuid"])
        for body in bodies
        if body["name"].startswith(incomplete) and body["name"].isprintable()
    ]
    by_uuid = [
        CompletionItem(body["uuid"], help=body["name"])
        for body in bodies
        if incomplete and body["uuid"].startswith(incomplete.lower())
    ]
    return (by_name or by_uuid)[:_NAMES_MAX]


def _providers(server: Questions, beginning: str) -> Iterable[ProviderBody]:
    """The providers that may be meant. Roost is asked for some, other servers for all of them."""
    if _UUID_BEGINNING.match(beginning):
        return server.providers()
    try:
        answer = server.answer(ask_roots(f"{beginning}*", _NAMES_MAX))
        roots = [dict(zip(answer["columns"], row, strict=True)) for row in answer["rows"]]
        return roots or _members(server, beginning)
    except (NotOffered, QuestionRefused):
        return server.providers()


def _members(server: Questions, beginning: str) -> Iterable[ProviderBody]:
    """The providers of the tree that a beginning belongs to.

    The name of a provider below another one usually goes on after the name of that one.
    """
    name = _WORD_END.sub("", beginning)
    while name != beginning:
        try:
            members: Iterable[ProviderBody] = server.answer(ask_tree(name))["providers"]
            return members
        except QuestionRefused as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
        name, beginning = _WORD_END.sub("", name), name
    return ()


def _completing_names(read: Callable[[Questions, str], Iterable[str]]) -> _Completer:
    def complete(
        ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        del param
        names = sorted(_asked(ctx, lambda server: read(server, incomplete)))
        return [CompletionItem(name) for name in names if name.startswith(incomplete)][:_NAMES_MAX]

    return complete


complete_traits = _completing_names(
    lambda server, beginning: server.trait_names(beginning=beginning)
)
complete_classes = _completing_names(lambda server, _: server.known_resource_classes())


def complete_owners(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Names of owners that have records on this machine."""
    del param
    try:
        names = owners_in(ctx.params.get("records") or default_directory())
    except PlacementError:
        return []
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


class CompletedWord(GivenWord):
    """A word that a shell completes, and the name that it has in the help."""

    def __init__(self, metavar: str, complete: _Completer) -> None:
        self._metavar = metavar
        self._complete = complete

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """The name in the help."""
        return self._metavar

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """What may stand in place of this beginning."""
        return self._complete(ctx, param, incomplete)


PROVIDER = CompletedWord("NAME_OR_UUID", complete_providers)
TRAIT = CompletedWord("TRAIT", complete_traits)
RESOURCE_CLASS = CompletedWord("CLASS", complete_classes)
OWNER = CompletedWord("OWNER", complete_owners)
CONTEXT = CompletedWord("NAME", complete_contexts)


def _asked(ctx: click.Context, read: Callable[[Questions], Iterable[Any]]) -> list[Any]:
    """What the server answers; nothing if anything fails, or takes too long."""
    names = (field.name for field in fields(ConnectionSettings))
    given: dict[str, Any] = {name: ctx.params.get(name) for name in names}
    given |= {"timeout": SECONDS_IN_ALL, "url_option": "", "uses_contexts": True}
    settings = ConnectionSettings(**given)
    answer: Future[list[Any]] = Future()

    def ask() -> None:
        try:
            with settings.open(repeats=0) as sender:
                answer.set_result(list(read(Questions(sender))))
        except Exception:  # Whatever it is: a shell that completes a word shows no errors.
            answer.set_result([])

    with open(os.devnull, "w") as nowhere, redirect_stderr(nowhere):
        # A server may send one byte after another: only a clock beside the requests is a bound.
        Thread(target=ask, daemon=True).start()
        try:
            return answer.result(SECONDS_IN_ALL)
        except TimeoutError:
            return []
