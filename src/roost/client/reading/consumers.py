"""Reads the consumers of a server with what they hold.

Roost lists them. Placement has no such list, so on other servers their uuids come from the
allocations of providers, and each consumer is asked for. Both ways find the same consumers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from itertools import islice

from roost.client.errors import NotOffered, QuestionRefused
from roost.client.placement import Placement, ProviderBody
from roost.client.placement.answers import AmountsByClass
from roost.client.questions import Json, Questions, ServerQuestion, ask_consumers
from roost.client.reading.cloud_provider import CloudProvider, sum_of
from roost.client.reading.cloud_reader import (
    THREADS,
    CloudReader,
    Facet,
    ProviderChoice,
    TellProgress,
)
from roost.client.reading.parallel import in_order

_PATH = "/roost/consumers"
_UNTYPED = "unknown"
"""What the API calls a consumer without type."""

Progress = Callable[[str], AbstractContextManager[TellProgress]]
"""Shows the progress of some work, by its title."""


@dataclass(frozen=True, slots=True)
class Holder:
    """A consumer with all that it holds, by the uuid of the provider."""

    uuid: str
    holds: Mapping[str, AmountsByClass]
    project: str | None = None
    user: str | None = None
    generation: int | None = None
    # `None` before 1.38, and for a consumer that no client has given a type.
    type: str | None = None
    # The names of its providers, as far as they are known.
    names: Mapping[str, str] = field(default_factory=dict, compare=False)

    @property
    def amounts(self) -> AmountsByClass:
        """The amount of each class on all providers together."""
        return dict(sorted(sum_of(self.holds.values()).items()))


@dataclass(frozen=True, slots=True)
class ConsumerChoice:
    """Which consumers: those that hold something below some providers, with these owners."""

    # The highest providers; all providers if there is none.
    below: Sequence[ProviderBody] = ()
    project: str | None = None
    user: str | None = None
    # The type; `unknown` for consumers without one.
    kind: str | None = None
    # What only the list of Roost has: the least age, and the order, by age or by size.
    older_than: str | None = None
    order: str | None = None

    @property
    def needs_list(self) -> bool:
        """Whether only the list of Roost answers it."""
        return self.older_than is not None or self.order is not None

    def has(self, holder: Holder) -> bool:
        """Whether the owners and the type of a consumer are those that are wanted."""
        return (
            self.project in (None, holder.project)
            and self.user in (None, holder.user)
            and self.kind in (None, holder.type or _UNTYPED)
        )


@dataclass(frozen=True, slots=True)
class FoundConsumers:
    """Consumers, and the number of providers that were asked for them; `None` for a list."""

    consumers: list[Holder]
    asked: int | None = None


def consumers_of(providers: Iterable[CloudProvider]) -> list[str]:
    """The uuids of all consumers that hold something of these providers."""
    return sorted({uuid for provider in providers for uuid in provider.allocations})


def _without_progress(_title: str) -> AbstractContextManager[TellProgress]:
    return nullcontext(lambda *_: None)


class ConsumerReader:
    """Reads consumers from one server."""

    def __init__(self, server: Placement, threads: int = THREADS) -> None:
        self._server = server
        self._threads = threads
        self._reader = CloudReader(server, threads)

    def find(
        self,
        chosen: ConsumerChoice,
        at_most: int | None = None,
        progress: Progress = _without_progress,
    ) -> FoundConsumers:
        """So many of the chosen consumers that hold something, or all of them."""
        listed = self._listed(chosen, at_most)
        if listed is not None:
            return FoundConsumers(listed)
        names = {body["uuid"]: str(body["name"]) for body in self._server.providers()}
        below = ProviderChoice(below=chosen.below or None)
        with progress("asking providers") as tell:
            providers = list(self._reader.providers(below, (Facet.ALLOCATIONS,), tell))
        with progress("asking consumers") as tell:
            holders = self.each(consumers_of(providers), tell, names)
            found = list(islice(filter(chosen.has, holders), at_most))
        return FoundConsumers(found, len(providers))

    def each(
        self,
        uuids: Sequence[str],
        tell: TellProgress = lambda *_: None,
        names: Mapping[str, str] | None = None,
    ) -> Iterator[Holder]:
        """These consumers, as the caller takes them; one that ends meanwhile is left out."""

        def read(uuid: str) -> Holder | None:
            return self.one(uuid, names)

        for holder in in_order(uuids, read, self._threads):
            tell(len(uuids), 1)
            if holder is not None:
                yield holder

    def one(self, uuid: str, names: Mapping[str, str] | None = None) -> Holder | None:
        """A consumer; `None` if it holds nothing, because then Placement knows nothing of it."""
        body = self._server.allocations_of(uuid, str(self._server.version))
        if not body["allocations"]:
            return None
        kind = body.get("consumer_type")
        return Holder(
            uuid=uuid,
            holds={uuid: dict(its["resources"]) for uuid, its in body["allocations"].items()},
            project=body.get("project_id"),
            user=body.get("user_id"),
            generation=body.get("consumer_generation"),
            type=None if kind in (None, _UNTYPED) else str(kind),
            names=names or {},
        )

    # -- the list of Roost

    def _listed(self, chosen: ConsumerChoice, at_most: int | None) -> list[Holder] | None:
        """The consumers that Roost lists, in its order; `None` if the caller gets no list."""
        if not isinstance(self._server, Questions):
            return None
        found: dict[str, Json] = {}
        try:
            for top in [top["uuid"] for top in chosen.below] or [None]:
                holding = filter(_holds, self._server.rows(_question(chosen, top, at_most)))
                found |= {row["consumer"]: row for row in islice(holding, at_most)}
        except NotOffered as error:
            if chosen.needs_list:
                raise error.advising("roost consumer list") from None
            return None
        except QuestionRefused as error:
            # A policy may let the caller read allocations only.
            if error.status != 403 or chosen.needs_list:
                raise
            return None
        rows = list(found.values())
        if len(chosen.below) > 1:
            rows.sort(key=_largest_first if chosen.order == "size" else _oldest_first)
        return [_holder(row) for row in rows[:at_most]]


def _question(chosen: ConsumerChoice, provider: str | None, at_most: int | None) -> ServerQuestion:
    return ask_consumers(
        at_most,
        type=chosen.kind,
        project=chosen.project,
        user=chosen.user,
        older_than=chosen.older_than,
        order=chosen.order,
        provider=provider,
    )


def _holds(row: Json) -> bool:
    """Whether a consumer holds something. Placement shows no others, and the list has some."""
    if "allocations" not in row:
        # An older version of Roost tells how many providers there are, but not which.
        raise NotOffered("The server lists consumers without their allocations", _PATH)
    return bool(row["allocations"])


def _oldest_first(row: Json) -> str:
    return str(row["created_at"] or "")


def _largest_first(row: Json) -> float:
    return -float(row["size"])


def _holder(row: Json) -> Holder:
    return Holder(
        uuid=row["consumer"],
        holds={one["provider"]["uuid"]: one["resources"] for one in row["allocations"]},
        project=row["project_id"],
        user=row["user_id"],
        generation=row["generation"],
        type=row["consumer_type"],
        names={one["provider"]["uuid"]: one["provider"]["name"] for one in row["allocations"]},
    )
