"""Writing allocations: conflicts are retried, and lost answers are looked for.

A write whose answer was lost may have been carried out, may still be, or may never be. So:

1. The consumers are read and compared with what was sent. If they hold it, it was carried out,
   and that is the answer.
2. If a consumer is neither what was sent nor at the generation that the write was to replace,
   somebody else wrote it since. Nothing more is written; the caller is told of the conflict.
3. Otherwise the same bytes are sent again. They replace the same generations, so the server
   accepts at most one of all copies, however late the first may still arrive: nothing doubles.
4. After a loss the outcome is never "refused", since the first copy might still be carried out
   after a later one was refused. What cannot be settled stays an `AnswerLost`.

Before version 1.28 the server compares no generations, so that there a late copy can replace what
somebody else wrote meanwhile; it still does not double anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from urllib.parse import quote

from roost.client.claims.requests import GENERATION_VERSION, Body, Holding
from roost.client.errors import (
    AnswerLost,
    NotConfigured,
    PlacementError,
    TransportFailed,
    UnreadableAnswer,
)
from roost.client.reporting.placement import CONCURRENT_UPDATE, GATEWAY_FAILURES
from roost.client.transport import Request, Response, Transport

RETRIES = 3
"""How often a write is tried again after the first try."""

_CONSUMER_CONFLICT = "consumer generation conflict"

DONE_BEFORE = Response(204)
"""Stands for the answer to a write that was found carried out."""


class _ReadRefused(Exception):
    """The server would not say what a consumer holds."""

    def __init__(self, answer: Response) -> None:
        super().__init__(answer.detail)
        self.answer = answer


class Fate(Enum):
    """What became of a write, as far as its consumers tell."""

    DONE = auto()
    OPEN = auto()
    OVERTAKEN = auto()
    UNKNOWN = auto()


@dataclass(frozen=True, slots=True)
class Change:
    """A request that gives consumers new allocations.

    `generations` are those that it replaces; a consumer without one is replaced in any case.
    """

    request: Request
    bodies: Mapping[str, Body]
    generations: Mapping[str, int | None] = field(default_factory=dict)

    def fate(self, now: Mapping[str, Holding]) -> Fate:
        """What became of it, given what its consumers hold now.

        Consumers are read one after the other, so a write that lands in between shows only in
        some of them; that is still open.
        """
        fates = {self._fate_of(consumer, holding) for consumer, holding in now.items()}
        if Fate.OVERTAKEN in fates:
            return Fate.OVERTAKEN
        return Fate.OPEN if Fate.OPEN in fates else Fate.DONE

    def _fate_of(self, consumer: str, now: Holding) -> Fate:
        if now.equals(Holding.from_body(self.bodies[consumer])):
            return Fate.DONE
        if self.generations.get(consumer, now.generation) == now.generation:
            return Fate.OPEN
        return Fate.OVERTAKEN


def put_change(consumer_uuid: str, body: Body, version: str, generation: int | None) -> Change:
    """The change of one consumer."""
    request = Request("PUT", allocations_path(consumer_uuid), body, version)
    return Change(request, {consumer_uuid: body}, {consumer_uuid: generation})


def post_change(bodies: Mapping[str, Body], version: str) -> Change:
    """The change of several consumers, all or none."""
    generations = {consumer: body["consumer_generation"] for consumer, body in bodies.items()}
    return Change(Request("POST", "/allocations", dict(bodies), version), bodies, generations)


def delete_change(consumer_uuid: str) -> Change:
    """The change that takes everything from a consumer, whatever it is."""
    request = Request("DELETE", allocations_path(consumer_uuid))
    return Change(request, {consumer_uuid: {"allocations": {}}})


def allocations_path(consumer_uuid: str) -> str:
    """Where the allocations of a consumer are."""
    return f"/allocations/{quote(consumer_uuid, safe='')}"


def is_conflict(answer: Response) -> bool:
    """Whether somebody else changed a provider or a consumer at the same time."""
    return answer.status == 409 and answer.code == CONCURRENT_UPDATE


def is_consumer_conflict(answer: Response) -> bool:
    """Whether it was the consumer: reading it again is then the caller's decision."""
    return is_conflict(answer) and _CONSUMER_CONFLICT in answer.detail


def is_provider_conflict(answer: Response) -> bool:
    """Whether it was a provider, so that the same write may well succeed the next time."""
    return is_conflict(answer) and not is_consumer_conflict(answer)


def nothing_held(consumer_uuid: str) -> Response:
    """Stands for the answer to a write that nobody needs to send, for there is nothing."""
    return Response(404, content=f"consumer {consumer_uuid} holds nothing".encode())


def refusal(kind: type[PlacementError], message: str, answer: Response) -> PlacementError:
    """The error for an answer, with all that the server said."""
    return kind(message, status=answer.status, detail=answer.detail, request_id=answer.request_id)


class AllocationWriter:
    """Reads and writes the allocations of consumers."""

    def __init__(
        self,
        transport: Transport,
        sleep: Callable[[float], None],
        random: Callable[[float, float], float],
    ) -> None:
        self._transport = transport
        self._sleep = sleep
        self._random = random

    def read(self, consumer_uuid: str, version: str = GENERATION_VERSION) -> Holding:
        """What a consumer holds; to be called by what `write` calls."""
        request = Request("GET", allocations_path(consumer_uuid), version=version, repeatable=True)
        try:
            answer = self._transport.send(request)
        except AnswerLost as error:
            # Whoever catches it need not fear that something was written.
            error.maybe_done = False
            raise
        if not answer.ok:
            raise _ReadRefused(answer)
        try:
            return Holding.from_body(answer.json)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise answer.unreadable() from error

    def tries(self) -> Iterator[int]:
        """The numbers of the tries, from 0; a random while passes before each but the first."""
        yield 0
        for number in range(1, RETRIES + 1):
            self._sleep(self._random(0, 2 * number))
            yield number

    def write(
        self,
        prepare: Callable[[], Change | Response],
        failure: type[PlacementError],
        retry: Callable[[Response], bool] = is_provider_conflict,
    ) -> Response:
        """Send what `prepare` makes, anew for each try that `retry` wants; give the last answer.

        `prepare` may give an answer instead if it can tell without writing; what it cannot read
        it cannot change, so the refusal is the answer. A conflict about a consumer that is not
        retried is raised as `failure`.
        """
        answer: Response
        tries = self.tries()
        for _ in tries:
            try:
                change = prepare()
            except _ReadRefused as refused:
                return refused.answer
            if isinstance(change, Response):
                return change
            try:
                answer = self._send(change.request)
            except AnswerLost as lost:
                return self._settle(change, lost, tries, failure)
            if not retry(answer):
                if is_consumer_conflict(answer):
                    raise refusal(failure, f"{change.request} came too late", answer)
                break
        return answer

    def _send(self, request: Request) -> Response:
        answer = self._transport.send(request)
        if answer.status in GATEWAY_FAILURES:
            raise refusal(AnswerLost, f"a gateway has no answer to {request}", answer)
        return answer

    def _settle(
        self,
        change: Change,
        lost: AnswerLost,
        tries: Iterator[int],
        failure: type[PlacementError],
    ) -> Response:
        """Find out about a change whose answer was lost; see the rule at the top."""
        refused = None
        for _ in tries:
            fate = self._fate(change, failure)
            if fate is Fate.DONE:
                return DONE_BEFORE
            if fate is Fate.UNKNOWN:
                continue
            try:
                refused = self._send(change.request)
            except (TransportFailed, NotConfigured):
                continue
            if refused.ok:
                return refused
            if not is_conflict(refused):
                break
        if self._fate(change, failure) is Fate.DONE:
            return DONE_BEFORE
        if refused is None:
            raise lost
        message = f"the answer to {change.request} was lost, and sending it again was refused"
        raise refusal(AnswerLost, message, refused) from lost

    def _fate(self, change: Change, failure: type[PlacementError]) -> Fate:
        try:
            now = {consumer: self.read(consumer) for consumer in change.bodies}
        except (TransportFailed, NotConfigured, UnreadableAnswer, _ReadRefused):
            return Fate.UNKNOWN
        fate = change.fate(now)
        if fate is Fate.OVERTAKEN:
            consumers = ", ".join(change.bodies)
            raise failure(
                f"the answer to {change.request} was lost, and somebody else has written the "
                f"allocations of {consumers} since: read them before writing again"
            )
        return fate
