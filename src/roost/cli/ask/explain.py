"""The commands `roost explain` and `roost why`: why a request has candidates or none."""

from __future__ import annotations

import shlex
import sys
from functools import partial
from typing import Any

import click

from roost.cli.ask.asking import (
    announce,
    answered,
    any_server_command,
    asking,
    ready_pairs,
    room_command,
    waiting,
)
from roost.cli.ask.explanation import ExplanationPicture, stage_table
from roost.cli.completers import complete_providers
from roost.cli.connection import ConnectionSettings, connection_options
from roost.cli.output import Output, OutputForm, output_options
from roost.cli.parameters import WORD
from roost.cli.request.command import EXIT_NONE, RequestCommand, request_options
from roost.cli.request.query_text import query_string
from roost.cli.request.words import TypedRequest
from roost.cli.watching import present, watch_option
from roost.client.questions import ask_why

_STATUS = """\b
Exit status: 0 if there are candidates, 2 if there are none, 1 after an error.
"""


@click.command(
    cls=RequestCommand,
    short_help="Say why a request has candidates or none.",
    epilog=f"""\b
Examples:
  roost explain VCPU=4 MEMORY_MB=8192
  roost explain VCPU=4 --require HW_CPU_X86_AVX2 --group net SRIOV_NET_VF=1
  roost explain --from-query 'resources=VCPU%3A4&limit=1000'
  roost explain VCPU=4 --watch=5

{_STATUS}""",
)
@click.option(
    "--misses",
    metavar="NUMBER",
    type=click.IntRange(0, 100),
    help="How many of the nearest misses to show. [default: 5]",
)
@request_options
@watch_option
@output_options
@connection_options
def explain(**arguments: Any) -> None:
    """Say why a request has candidates or none.

    A funnel shows for each group of the request what each stage leaves. Below it stand the trees
    that lack the least, and requests that would have candidates.
    """
    _explain(host=None, **arguments)


@click.command(
    cls=RequestCommand,
    short_help="Say why a request fits on one host or not.",
    epilog=f"""\b
Examples:
  roost why compute-1 VCPU=4 MEMORY_MB=8192
  roost why compute-1 --from-query 'resources=VCPU%3A4'

{_STATUS}""",
)
@click.argument("host", type=WORD, metavar="HOST", shell_complete=complete_providers)
@request_options
@watch_option
@output_options
@connection_options
def why(**arguments: Any) -> None:
    """Say why a request fits on one host or not.

    HOST is the name or uuid of any provider of the host's tree.
    """
    _explain(misses=None, **arguments)


def _explain(
    *,
    connection: ConnectionSettings,
    request: TypedRequest,
    host: str | None,
    misses: int | None,
    only_query: bool,
    output: OutputForm,
    watch: float | None,
) -> None:
    # A server without explanations lists providers, or candidates in the tree of a host.
    elsewhere = (
        room_command(request.pairs)
        if host is None
        else any_server_command((*request.pairs, ("in_tree", host)))
    )
    with asking(connection, elsewhere) as server:
        pairs = ready_pairs(server, request)
        query = query_string(pairs)
        if only_query:
            click.echo(query)
            return
        question = ask_why(query, host, misses)
        announce(f"GET {question.address}")
        feasible = True

        def read() -> Output:
            nonlocal feasible
            with waiting("The server explains ...", quiet=watch is not None):
                answer = answered(server, pairs, question, [host] if host else [])
            feasible = answer["feasible"]
            picture = ExplanationPicture(answer, pairs, partial(_hinted_command, host), host)
            return Output(stage_table(answer), answer, picture)

        present(read, output, watch)
    if not feasible:
        sys.exit(EXIT_NONE)


def _hinted_command(host: str | None, query: str) -> str:
    """The command that asks the same question of a query close by."""
    asked = "roost candidates" if host is None else f"roost why {shlex.quote(host)}"
    return f"{asked} --from-query {shlex.quote(query)}"
