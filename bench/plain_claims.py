"""What a plain client of a database needs for a claim, whatever the database."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Protocol

from http_connection import encode
from meters import claim_body

PROJECT, USER, TYPE = "project", "user", "INSTANCE"

Wanted = dict[str, dict[str, int]]
"""Provider uuid -> resource class -> amount."""


class DoesNotFit(Exception):
    """A provider has no room for a claim."""


@dataclass(frozen=True)
class Claim:
    """A claim of a new consumer."""

    consumer: str
    wanted: Wanted

    @cached_property
    def request(self) -> bytes:
        """The claim as a request over HTTP."""
        return encode("PUT", f"/allocations/{self.consumer}", claim_body(self.wanted))

    @cached_property
    def providers(self) -> list[str]:
        """The uuids of the providers."""
        return sorted(self.wanted)

    @cached_property
    def classes(self) -> list[str]:
        """The names of the resource classes."""
        return sorted({name for resources in self.wanted.values() for name in resources})

    @cached_property
    def rows(self) -> list[tuple[str, str, int]]:
        """Provider, resource class and amount of each allocation."""
        return [
            (provider, name, amount)
            for provider, resources in self.wanted.items()
            for name, amount in resources.items()
        ]


class PlainClient(Protocol):
    """A client that makes claims by SQL."""

    def claim(self, claim: Claim) -> int:
        """Make a claim and return the number of repetitions."""


def make_claims(seed: str, wanted: Iterable[Wanted]) -> list[Claim]:
    """A claim for each entry of `wanted`; the same seed gives the same consumers."""
    numbers = random.Random(seed)
    return [Claim(str(uuid.UUID(int=numbers.getrandbits(128), version=4)), each) for each in wanted]


@dataclass(frozen=True)
class Names:
    """The ids of the names that a claim uses."""

    classes: dict[str, int]
    owner: tuple[int, int, int]
    """The ids of project, user and consumer type."""


def read_names(rows: Iterable[tuple[str, int, str]]) -> Names:
    """The names in the rows of the look-up: kind, id, name."""
    classes, owner = {}, {}
    for kind, id_, name in rows:
        if kind == "class":
            classes[name] = id_
        else:
            owner[kind] = id_
    return Names(classes, (owner["project"], owner["user"], owner["type"]))


def check_room(
    claim: Claim, names: Names, provider_ids: dict[str, int], usages: Iterable[Sequence[Any]]
) -> None:
    """Raise `DoesNotFit` unless every amount is allowed and fits."""
    found = {(row[0], row[1]): row[3:] for row in usages}
    for provider, name, amount in claim.rows:
        total, reserved, least, most, step, ratio, used = found[
            provider_ids[provider], names.classes[name]
        ]
        if amount < least or amount > most or amount % step:
            raise DoesNotFit(f"{amount} of {name} is no possible amount")
        if int(used) + amount > (total - reserved) * ratio:
            raise DoesNotFit(f"{amount} of {name} does not fit beside {used}")


def now() -> datetime:
    """The current time as the tables keep it."""
    return datetime.now(UTC).replace(tzinfo=None)


def allocation_rows(
    claim: Claim, names: Names, provider_ids: dict[str, int], time: datetime
) -> list[tuple[Any, ...]]:
    """The rows of the allocations of a claim."""
    return [
        (time, provider_ids[provider], claim.consumer, names.classes[name], amount)
        for provider, name, amount in claim.rows
    ]


def change_rows(provider_ids: dict[str, int], time: datetime) -> list[tuple[Any, ...]]:
    """The rows of the journal for the providers of a claim."""
    return [(time, id_, uuid) for uuid, id_ in sorted(provider_ids.items(), key=lambda p: p[1])]


def one_row_each(statement: str, rows: Sequence[Sequence[Any]]) -> tuple[str, list[Any]]:
    """An INSERT that ends with the values of one row, for several rows; and all parameters."""
    head, values = statement.split(" VALUES ")
    parameters = [value for row in rows for value in row]
    return f"{head} VALUES {', '.join([values] * len(rows))}", parameters
