"""Candidates as rows of a table: what each provider would give, and what it has left. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from roost.cli.ask.asked import group_name
from roost.cli.table import Table, TableColumn
from roost.client.questions import Json

_COLUMNS = (
    TableColumn("CANDIDATE", right=True),
    TableColumn("PROVIDER"),
    TableColumn("GROUPS"),
    TableColumn("RESOURCE CLASS"),
    TableColumn("AMOUNT", right=True),
    TableColumn("FREE", right=True),
    TableColumn("ROOT", optional=True),
    TableColumn("UUID", optional=True),
)


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
