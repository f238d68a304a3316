"""Consumers of a ledger: where a query fits, claims, moves and releases.

A claim is for a consumer that holds nothing. A consumer that holds exactly what it claims keeps
it, so a claim on named providers may be repeated. A consumer that holds anything else is
`AlreadyAllocated`, and nothing is written. `move` replaces all that a consumer holds, in one write.

`roost.client.claims.allocation_writer` has the rules for a lost answer and for a server error. An
outcome that stays unknown is raised as `WriteLost`, never told as a refusal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from roost.client.claims.allocation_writer import (
    DONE_BEFORE,
    AllocationChange,
    is_provider_conflict,
    put_change,
)
from roost.client.claims.claiming import OLDEST_WITH_CLAIMS, claim_refused, demand_types
from roost.client.claims.consumer_state import (
    ConsumerState,
    claim_body,
    reading_version,
    require_amounts,
    writing_version,
)
from roost.client.errors import (
    AllocationDeleteFailed,
    AllocationUpdateFailed,
    AlreadyAllocated,
    ClaimRefused,
    NoSuchConsumer,
    NothingFits,
    PlacementError,
)
from roost.client.ledger.explanations import (
    QueryCapacity,
    QueryExplanation,
    capacity_value,
    explanation_value,
)
from roost.client.ledger.ledger_server import LedgerServer
from roost.client.ledger.query import (
    AnyQuery,
    Needs,
    QueryPairs,
    pairs_in,
    plain_pairs,
    query_string,
)
from roost.client.ledger.values import (
    AnyAllocations,
    AnyProvider,
    Candidate,
    Claimed,
    candidate_values,
)
from roost.client.placement.answers import is_concurrent_update, refusal
from roost.client.provider_tree import SHARING_TRAIT
from roost.client.questions import (
    ask_candidates,
    ask_capacity,
    ask_ranked_candidates,
    ask_why,
)
from roost.client.reading.consumers import ConsumerChoice, ConsumerReader, Holder
from roost.client.reading.lookup import find_provider
from roost.client.transport import PlacementResponse
from roost.client.versions import ServerTooOld
from roost.model.identifiers import canonical_uuid, is_uuid, new_uuid
from roost.model.inventory import Inventory

_CONFLICT = 409


@dataclass(frozen=True, slots=True)
class _Ranking:
    """The order in which a server of Roost gives candidates; any server if nothing is said."""

    order: str | None = None
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class _ClaimSearch:
    """What a claim looks for, and how many candidates it tries.

    `leaving` are roots to leave. A candidate uses the root `onto`, if there is one.
    """

    pairs: QueryPairs
    ranking: _Ranking
    tries: int
    leaving: frozenset[str] = frozenset()
    onto: str | None = None

    def __post_init__(self) -> None:
        if self.tries < 1:
            raise ValueError(f"tries is {self.tries}: a claim needs one at least")

    @property
    def limit(self) -> int | None:
        """How many candidates to ask for: all, if some are left out, since no query leaves them."""
        return self.tries if self.onto is None and not self.leaving else None

    def takes(self, candidate: Candidate) -> bool:
        """Whether a candidate uses the roots that it should."""
        is_there = self.onto is None or self.onto in candidate.roots
        return is_there and self.leaving.isdisjoint(candidate.roots)


class _Write(NamedTuple):
    """How a consumer gets a candidate: what makes each try, and which answers are tried again.

    `held` is what the consumer gives up for it. A dry run makes no try.
    """

    prepare: Callable[[], AllocationChange | PlacementResponse]
    retry: Callable[[PlacementResponse], bool]
    held: Mapping[str, Mapping[str, int]] = {}
    dry_run: bool = False


class ConsumerLedger(LedgerServer):
    """The consumers of a server, and the questions about room for more."""

    project: str
    user: str

    # -- questions

    def candidates(
        self,
        query: AnyQuery,
        *,
        limit: int | None = 100,
        order: str | None = None,
        seed: int | None = None,
    ) -> tuple[Candidate, ...]:
        """The ways to satisfy a query, at most `limit`; none if nothing fits.

        An `order` (`pack`, `spread`, `random` with a `seed`) needs Roost, else it is `NotOffered`.
        """
        return self._candidates(self._pairs(query), limit, _Ranking(order, seed))

    def explain(
        self, query: AnyQuery, *, provider: AnyProvider | None = None, misses: int | None = None
    ) -> QueryExplanation:
        """Why a query has candidates or none, of all trees or that of a provider. Needs Roost."""
        among = None if provider is None else self._uuid(provider)
        question = ask_why(query_string(self._pairs(query)), among, misses)
        return explanation_value(self._server.answer(question))

    def capacity(self, query: AnyQuery, *, by_root: bool = False) -> QueryCapacity:
        """How many more consumers with this query fit, in all or by root too. Needs Roost."""
        question = ask_capacity(query_string(self._pairs(query)), by_root=by_root)
        return capacity_value(self._server.answer(question))

    def _candidates(
        self, pairs: QueryPairs, limit: int | None, ranking: _Ranking
    ) -> tuple[Candidate, ...]:
        if limit is not None and "limit" not in dict(pairs):
            pairs = (*pairs, ("limit", str(limit)))
        text = query_string(pairs)
        if ranking == _Ranking() and plain_pairs(pairs) == pairs:
            question = ask_candidates(text)
        else:
            question = ask_ranked_candidates(text, ranking.order, ranking.seed)
        return candidate_values(self._server.answer(question))

    # -- consumers

    def consumer(self, uuid: str) -> Holder | None:
        """A consumer with all that it holds; `None` if it holds nothing."""
        return ConsumerReader(self._server).one(_canonical(uuid))

    def consumers(
        self,
        *,
        type: str | None = None,
        project: str | None = None,
        user: str | None = None,
        provider: AnyProvider | None = None,
    ) -> Iterator[Holder]:
        """The consumers that meet all conditions, and hold something.

        With a provider, those that hold something of it or below it. A server without a list of
        consumers is asked for the allocations of each provider.
        """
        below = [] if provider is None else [find_provider(self._server, self._uuid(provider))]
        chosen = ConsumerChoice(below, project, user, type)
        return iter(ConsumerReader(self._server).find(chosen).consumers)

    # -- claims

    def claim(
        self,
        query: AnyQuery,
        *,
        consumer: str | None = None,
        project: str | None = None,
        user: str | None = None,
        type: str | None = None,
        order: str | None = None,
        seed: int | None = None,
        tries: int = 20,
        dry_run: bool = False,
    ) -> Claimed:
        """Claim what a query asks for, or raise why not; a new consumer if none is named.

        Other clients may take a candidate first. Then the next one is claimed, `tries` in all.
        `NothingFits` if there is no candidate, `ClaimRefused` if the last try is refused, and
        `AlreadyAllocated` if the consumer holds anything. A dry run tells the same, and writes
        nothing.
        """
        claimer = self._claimer(consumer, project, user, type)
        if consumer is not None and (held := self.consumer(claimer.uuid)) is not None:
            raise _already_allocated(claimer.uuid, held.holds)
        return self._first_free(
            claimer,
            _ClaimSearch(self._pairs(query), _Ranking(order, seed), tries),
            lambda candidate: self._claiming(claimer, candidate, dry_run),
        )

    def claim_on(
        self,
        allocations: AnyAllocations,
        *,
        consumer: str | None = None,
        project: str | None = None,
        user: str | None = None,
        type: str | None = None,
        dry_run: bool = False,
    ) -> Claimed:
        """Claim these amounts of these providers, or raise why not.

        `ClaimRefused` if they lack room, and `AlreadyAllocated` if the consumer holds anything
        else. A consumer that holds exactly this keeps it: the claim is `repeated`.
        """
        claimer = self._claimer(consumer, project, user, type)
        candidate = self._candidate(allocations)
        return self._written(claimer, candidate, self._claiming(claimer, candidate, dry_run))

    def move(
        self,
        consumer: str,
        query: AnyQuery | None = None,
        *,
        off: Collection[AnyProvider] | None = None,
        onto: AnyProvider | None = None,
        order: str | None = None,
        seed: int | None = None,
        tries: int = 20,
        dry_run: bool = False,
    ) -> Claimed:
        """Replace all that a consumer holds by what a query asks for, in one write.

        Without a query, the consumer keeps its amounts. `off` names providers whose trees it must
        not use. Without `off`, these are the trees that it uses, except those that share. `onto`
        names a provider whose tree it must use. `NoSuchConsumer` if it holds nothing.
        """
        mover, held = self._mover(consumer)
        target = None if onto is None else self._root(onto)
        leaving = self._trees_of(held) if off is None else {self._root(one) for one in off}
        if off is None:
            leaving.discard(target or "")
        wanted = pairs_in(_needs_of(held)) if query is None else self._pairs(query)
        return self._first_free(
            mover,
            _ClaimSearch(wanted, _Ranking(order, seed), tries, frozenset(leaving), target),
            lambda candidate: self._moving(mover, held, candidate, dry_run),
        )

    def move_to(
        self, consumer: str, allocations: AnyAllocations, *, dry_run: bool = False
    ) -> Claimed:
        """Replace all that a consumer holds by these amounts of these providers, in one write."""
        mover, held = self._mover(consumer)
        candidate = self._candidate(allocations)
        return self._written(mover, candidate, self._moving(mover, held, candidate, dry_run))

    def release(self, consumer: str) -> Holder | None:
        """Let a consumer hold nothing; returns what it held, or `None` if it held nothing."""
        uuid, version = _canonical(consumer), self._claim_version()
        held: list[ConsumerState] = []

        def prepare() -> AllocationChange | PlacementResponse:
            present = self._writer.read(uuid, reading_version(version))
            if not present.resources:
                return DONE_BEFORE
            held[:] = [present]
            body = present.body({}, present.generation)
            used = writing_version(version, present.consumer_type)
            return put_change(uuid, body, used, present.generation)

        # Whatever the consumer holds then is released, so any conflict may be retried.
        answer = self._writer.write(prepare, AllocationDeleteFailed, retry=is_concurrent_update)
        if not answer.ok:
            message = f"Consumer {uuid} keeps what it holds, because the server refused"
            raise refusal(AllocationDeleteFailed, message, answer)
        return _holder(uuid, held[0]) if held else None

    # -- the parts of a claim

    def _claim_version(self) -> str:
        newest = self._server.version
        if newest < OLDEST_WITH_CLAIMS:
            raise ServerTooOld(
                f"The server speaks placement {newest} at most, and claims need "
                f"{OLDEST_WITH_CLAIMS}. Upgrade the server."
            )
        return str(newest)

    def _claimer(
        self, consumer: str | None, project: str | None, user: str | None, type_: str | None
    ) -> Holder:
        """The consumer of a claim, before it holds anything."""
        version = self._claim_version()
        if type_ is not None:
            demand_types(version)
        return Holder(
            uuid=new_uuid() if consumer is None else _canonical(consumer),
            holds={},
            project=self.project if project is None else project,
            user=self.user if user is None else user,
            type=type_,
        )

    def _mover(self, consumer: str) -> tuple[Holder, Holder]:
        """The consumer of a move without its holdings, and with them."""
        self._claim_version()
        held = self.consumer(consumer)
        if held is None:
            raise NoSuchConsumer(
                f"Consumer {_canonical(consumer)} holds nothing, so there is nothing to move: "
                "claim for it"
            )
        return replace(held, holds={}, generation=None), held

    def _candidate(self, allocations: AnyAllocations) -> Candidate:
        if isinstance(allocations, Candidate):
            return allocations
        require_amounts(allocations)
        return Candidate(self._by_uuid(allocations))

    def _first_free(
        self,
        claimer: Holder,
        search: _ClaimSearch,
        writing: Callable[[Candidate], _Write],
    ) -> Claimed:
        """Write the first candidate that the server accepts; asks again if all are taken."""
        tries = search.tries
        refused: ClaimRefused | None = None
        overtaken = 0
        while overtaken < tries:
            found = self._candidates(search.pairs, search.limit, search.ranking)
            usable = list(filter(search.takes, found))
            if not usable:
                raise self._nothing_fits(claimer, search, len(found)) from refused
            for candidate in usable[: tries - overtaken]:
                try:
                    made = self._written(claimer, candidate, writing(candidate))
                    return replace(made, overtaken=overtaken)
                except ClaimRefused as error:
                    if error.status != _CONFLICT:
                        raise
                    refused = error
                    overtaken += 1
        assert refused is not None
        raise refused

    def _nothing_fits(self, claimer: Holder, search: _ClaimSearch, left_out: int) -> NothingFits:
        """The error for a query without usable candidates, with the reason if there is one."""
        message = f"Nothing was claimed for consumer {claimer.uuid}: "
        if search.onto is not None:
            message += f"the tree of {search.onto} has no room for it"
        elif left_out:
            message += (
                "no provider has room for it but those that it must leave, which have "
                f"{left_out} candidates"
            )
        else:
            message += "no provider has room for it"
        why = None
        if search.onto is not None or not left_out:
            try:
                why = self.explain(query_string(search.pairs), provider=search.onto)
            except PlacementError:
                # The claim is not made, whatever becomes of the question why.
                why = None
        error = NothingFits(message, detail=why.reason.text if why and why.reason else None)
        error.why = why
        return error

    def _claiming(self, claimer: Holder, candidate: Candidate, dry_run: bool) -> _Write:
        def prepare() -> AllocationChange | PlacementResponse:
            present = self._writer.read(claimer.uuid, reading_version(self._claim_version()))
            if not present.resources:
                return self._change(claimer, candidate, present.generation)
            if _holds(present.resources, candidate):
                return DONE_BEFORE
            raise _already_allocated(claimer.uuid, present.resources)

        # Each try looks at what the consumer holds then, so any conflict may be retried.
        return _Write(prepare, is_concurrent_update, dry_run=dry_run)

    def _moving(self, mover: Holder, held: Holder, candidate: Candidate, dry_run: bool) -> _Write:
        """The write of a move; the server refuses it if the consumer has changed since."""
        if _holds(held.holds, candidate):
            return _Write(lambda: DONE_BEFORE, is_provider_conflict, dry_run=dry_run)
        change = self._change(mover, candidate, held.generation)
        return _Write(lambda: change, is_provider_conflict, held.holds, dry_run)

    def _change(
        self, holder: Holder, candidate: Candidate, generation: int | None
    ) -> AllocationChange:
        request = candidate.request()
        used = writing_version(self._claim_version(), holder.type)
        body = claim_body(
            request,
            request["allocations"],
            project_id=holder.project or self.project,
            user_id=holder.user or self.user,
            version=used,
            generation=generation,
            consumer_type=holder.type,
        )
        return put_change(holder.uuid, body, used, generation)

    def _written(self, holder: Holder, candidate: Candidate, write: _Write) -> Claimed:
        last: list[AllocationChange | PlacementResponse] = []

        def prepare() -> AllocationChange | PlacementResponse:
            last[:] = [write.prepare()]
            return last[0]

        if write.dry_run:
            if prepare() is not DONE_BEFORE:
                self._demand_room(holder.uuid, candidate, write.held)
        else:
            answer = self._writer.write(prepare, AllocationUpdateFailed, write.retry)
            if not answer.ok:
                raise claim_refused(holder.uuid, answer)
        made = replace(holder, holds=candidate.allocations)
        return Claimed(made, candidate.groups, repeated=last[0] is DONE_BEFORE)

    def _demand_room(
        self, consumer: str, candidate: Candidate, held: Mapping[str, Mapping[str, int]]
    ) -> None:
        """Raise what is short for a candidate, as the server would if the consumer claimed it."""
        for uuid, amounts in candidate.allocations.items():
            inventories, used = self._server.inventories(uuid)[1], self._server.usages(uuid)
            for name, amount in amounts.items():
                by_others = used.get(name, 0) - held.get(uuid, {}).get(name, 0)
                lack = _lack(inventories.get(name), name, amount, by_others)
                if lack is not None:
                    raise _would_be_refused(consumer, uuid, name, lack)

    def _trees_of(self, held: Holder) -> set[str]:
        """The roots of the providers that a consumer uses, without those that share."""
        roots = set()
        for uuid in held.holds:
            if SHARING_TRAIT not in self._server.traits(uuid)[1]:
                roots.add(self._root(uuid))
        return roots


def _canonical(consumer: str) -> str:
    return canonical_uuid(consumer) if is_uuid(consumer) else consumer


def _holds(held: Mapping[str, Mapping[str, int]], candidate: Candidate) -> bool:
    """Whether a consumer that holds this has exactly what the candidate gives."""
    wanted = {uuid.lower(): dict(amounts) for uuid, amounts in candidate.allocations.items()}
    return {uuid.lower(): dict(amounts) for uuid, amounts in held.items()} == wanted


def _lack(fields: Mapping[str, Any] | None, name: str, amount: int, used: int) -> str | None:
    """Why an inventory does not give an amount, of which others hold so much; `None` if it does.

    >>> _lack({"total": 8}, "VCPU", 4, used=6)
    'has 2 VCPU left, and 4 are wanted'
    """
    if fields is None:
        return f"has no inventory of {name}"
    inventory = Inventory(name, **fields)
    if not inventory.allows(amount):
        return (
            f"does not allow {amount} {name}: min_unit is {inventory.min_unit}, max_unit "
            f"{inventory.max_unit}, step_size {inventory.step_size}"
        )
    if not inventory.fits(amount, used):
        left = max(0, int(inventory.capacity) - used)
        return f"has {left} {name} left, and {amount} are wanted"
    return None


def _would_be_refused(consumer: str, provider: str, name: str, lack: str) -> ClaimRefused:
    error = ClaimRefused(
        f"The claim for consumer {consumer} would be refused",
        detail=f"the provider {provider} {lack}",
        provider_uuid=provider,
    )
    error.resource_class = name
    return error


def _already_allocated(consumer: str, held: Mapping[str, Mapping[str, int]]) -> AlreadyAllocated:
    amounts = "; ".join(
        f"{', '.join(f'{amount} {name}' for name, amount in sorted(its.items()))} of {uuid}"
        for uuid, its in held.items()
    )
    error = AlreadyAllocated(
        f"The claim for consumer {consumer} was not made, because it holds {amounts}: move it, or "
        "release it first"
    )
    error.held = held
    return error


def _holder(uuid: str, state: ConsumerState) -> Holder:
    return Holder(
        uuid,
        state.resources,
        state.project_id,
        state.user_id,
        state.generation,
        state.consumer_type,
    )


def _needs_of(held: Holder) -> Needs:
    """What asks for the amounts of a consumer in another place.

    A query takes each class from one provider. So a consumer with one class of several providers
    needs as many groups, each of a provider of its own.

    >>> _needs_of(Holder("c", {"a": {"VCPU": 2}, "b": {"DISK_GB": 5}})).query
    'resources=DISK_GB:5,VCPU:2'
    >>> _needs_of(Holder("c", {"a": {"VF": 1}, "b": {"VF": 1}})).query
    'resources_0=VF:1&resources_1=VF:1&group_policy=isolate'
    """
    times = Counter(name for amounts in held.holds.values() for name in amounts)
    if max(times.values()) == 1:
        return Needs(held.amounts)
    groups = {f"_{number}": Needs(its) for number, its in enumerate(held.holds.values())}
    return Needs(groups=groups, isolate=True)
