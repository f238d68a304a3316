"""The command `roost candidates`: where a request fits."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import click

from roost.cli.ask.asking import TypedQuestion, question_command
from roost.cli.ask.options import candidate_options
from roost.cli.ask.words import group_name
from roost.cli.shared.exit_status import ExitStatus
from roost.cli.shared.output import Output, Table, columns_of
from roost.cli.shared.terminal import plain_line
from roost.client.ledger.query import QueryPairs, plain_pairs, query_string
from roost.client.questions import Json, ask_candidates, ask_ranked_candidates
from roost.client.reading.cloud_reader import CloudReader, ProviderChoice

_COLUMNS = columns_of(">CANDIDATE, PROVIDER, GROUPS, RESOURCE CLASS, >AMOUNT, >FREE, ROOT?, UUID?")


@dataclass(frozen=True, slots=True)
class CandidateList:
    """An answer of `GET /allocation_candidates`, of any version, and names by uuid."""

    answer: Json
    names: Mapping[str, str] = field(default_factory=dict)

    def roots(self) -> list[str]:
        """The roots of all providers in the candidates; before 1.29, the providers themselves."""
        used = dict.fromkeys(
            uuid for candidate in self._candidates() for uuid in candidate["allocations"]
        )
        return list(dict.fromkeys(map(self._root, used)))

    def table(self) -> Table:
        """A row for each provider and resource class of each candidate."""
        return Table(
            _COLUMNS,
            [
                row
                for number, candidate in enumerate(self._candidates(), 1)
                for row in self._rows(number, candidate)
            ],
        )

    def _candidates(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.answer["allocation_requests"]
        return found

    def _rows(self, number: int, candidate: Json) -> Iterator[list[Any]]:
        groups: dict[str, list[str]] = {}
        for suffix, uuids in candidate.get("mappings", {}).items():
            for uuid in uuids:
                groups.setdefault(uuid, []).append(group_name(suffix))
        for uuid, given in candidate["allocations"].items():
            for name, amount in sorted(given["resources"].items()):
                root = self._root(uuid)
                yield [
                    number,
                    self.names.get(uuid, uuid),
                    groups.get(uuid),
                    name,
                    amount,
                    self._free(uuid, name),
                    self.names.get(root, root),
                    uuid,
                ]

    def _summary(self, uuid: str) -> Json:
        found: Json = self.answer.get("provider_summaries", {}).get(uuid, {})
        return found

    def _root(self, uuid: str) -> str:
        root: str = self._summary(uuid).get("root_provider_uuid", uuid)
        return root

    def _free(self, uuid: str, name: str) -> int | None:
        amounts = self._summary(uuid).get("resources", {}).get(name)
        return None if amounts is None else max(0, amounts["capacity"] - amounts["used"])


LIMIT = 20
ORDERS = ("first", "pack", "spread", "random")


@question_command()
@candidate_options
@click.option(
    "--order",
    type=click.Choice(ORDERS),
    help="Which candidates come first. Roost only. [default: as the server is configured]",
)
@click.option(
    "--seed", metavar="NUMBER", type=click.IntRange(0, 2**32 - 1), help="Repeats a random order."
)
def candidates(
    *, asked: TypedQuestion, limit: int | None, order: str | None, seed: int | None
) -> Output:
    """Show where a request fits: the providers that would give it, and what they have left.

    It asks GET /allocation_candidates, which every placement server has. With an option that is
    marked `Roost only`, it asks GET /roost/candidates.

    \b
    Examples:
      roost candidates VCPU=4 MEMORY_MB=8192
      roost candidates VCPU=2 --require HW_CPU_X86_AVX2,'!CUSTOM_OLD' --limit 5
      roost candidates DISK_GB=10 --group cpu VCPU=2 --group net SRIOV_NET_VF=1 \\
          --same-subtree cpu,net
      roost candidates VCPU=4 --in-tree compute-1
      roost candidates VCPU=4 --or VCPU=2 --order pack
      roost candidates --from-query 'resources=VCPU%3A4&limit=1000'

    \b
    Exit status: 0 if there are candidates, 3 if there are none, 1 after an error.
    """
    pairs = _limited(asked.pairs, limit)
    query = query_string(pairs)
    if seed is not None:
        order = order or "random"
    if order or pairs != plain_pairs(pairs):
        question = ask_ranked_candidates(query, order, seed)
    else:
        question = ask_candidates(query)
    answer = asked.answer(query, question, sign="The server searches ...", pairs=pairs)
    listed = CandidateList(answer)
    if asked.form.is_table:
        trees = ProviderChoice(in_trees=listed.roots())
        known = {one.uuid: one.name for one in CloudReader(asked.server).providers(trees)}
        listed = CandidateList(answer, known)
    found = len(answer["allocation_requests"])
    if found:
        is_cut = str(found) == dict(pairs).get("limit")
        more = [f"There may be more than {found}: --limit 0 shows all."] if is_cut else []
        table = listed.table()
        # The first column has numbers, which name nothing.
        return Output(table, answer, notes=more, names=table.chosen(["provider"]).names())
    unlimited = query_string(pair for pair in pairs if pair[0] != "limit")
    return Output(
        listed.table(),
        answer,
        plain_line("There are no candidates.", "bold red"),
        notes=[f"Next: roost explain --from-query {shlex.quote(unlimited)}"],
        status=ExitStatus.NO,
    )


def _limited(pairs: QueryPairs, limit: int | None) -> QueryPairs:
    """The pairs with the limit of the option; without one, with the limit that they have."""
    if limit is None and "limit" in dict(pairs):
        return pairs
    bare = tuple(pair for pair in pairs if pair[0] != "limit")
    return bare if limit == 0 else (*bare, ("limit", str(limit or LIMIT)))
