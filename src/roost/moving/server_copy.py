"""Reads a live server until nothing has changed in between.

Most writes change the generation of their providers, and these are read again. A release of
allocations changes none, so the amounts of providers, consumers and projects are compared too.
A new owner or type of a consumer changes the generation of the consumer, which is compared too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

from roost.client.placement import ProviderBody
from roost.client.placement.answers import PROVIDER_FIELDS
from roost.client.reading.parallel import in_order
from roost.client.reading.survey import Survey, SurveyFailed
from roost.moving import Advance, silent
from roost.moving.survey_file import SurveyFile

ROUNDS_MAX = 20
# How many results are kept at once in the work file.
_KEPT_TOGETHER = 500

T = TypeVar("T")


@dataclass
class CopiedServer:
    """What was read: the names, the list of providers, and how often something had changed."""

    classes: list[str] = field(default_factory=list)
    traits: list[str] = field(default_factory=list)
    providers: list[ProviderBody] = field(default_factory=list)
    rounds: int = 0
    # How many providers were read again, because they changed meanwhile.
    read_again: int = 0


def copy_server(
    survey: Survey,
    file: SurveyFile,
    concurrency: int,
    advance: Advance = silent,
) -> CopiedServer:
    """Read everything; `SurveyFailed` if the server changes faster than it can be read."""
    return _Copying(survey, file, concurrency, advance).run()


class _Copying:
    def __init__(
        self, survey: Survey, file: SurveyFile, concurrency: int, advance: Advance
    ) -> None:
        self._survey = survey
        self._file = file
        self._concurrency = concurrency
        self._advance = advance
        self._copied = CopiedServer()

    def run(self) -> CopiedServer:
        self._doubt_earlier_run()
        for number in range(ROUNDS_MAX):
            self._copied.rounds = number + 1
            listed = self._survey.server.providers()
            changed = self._changed(listed)
            if number:
                self._copied.read_again += len(changed)
            self._read_providers(changed, len(listed))
            dirty = self._read_consumers()
            if not changed and not dirty and self._names_are_known(listed):
                dirty = self._wrong_projects()
                # A claim may hide a release in the sums, but changes a generation.
                if not dirty and _as_set(self._survey.server.providers()) == _as_set(listed):
                    self._copied.providers = listed
                    return self._copied
            self._file.forget_providers(dirty)
        raise SurveyFailed(
            f"The server changes faster than it can be read: after {ROUNDS_MAX} rounds, something "
            "was still new. Stop its clients for the copy, and run the same command again."
        )

    def _doubt_earlier_run(self) -> None:
        """Forget what may have changed since an earlier run without any generation.

        A client that sets aggregates with a version before 1.19 changes none.
        """
        known = list(self._file.generations())
        doubtful = [
            uuid
            for uuid, aggregates in self._in_parallel(self._survey.aggregates, known)
            if aggregates != self._file.provider(uuid).aggregates
        ]
        self._file.forget_providers(doubtful)
        if not self._survey.tells_consumer_generations:
            self._file.forget_consumers(self._file.consumer_uuids())

    def _changed(self, listed: Iterable[ProviderBody]) -> list[str]:
        """The providers that are to be read; providers that are gone are forgotten."""
        known = self._file.generations()
        now = {body["uuid"]: body["generation"] for body in listed}
        self._file.forget_providers(known.keys() - now.keys())
        return [uuid for uuid, generation in now.items() if known.get(uuid) != generation]

    def _read_providers(self, uuids: list[str], total: int) -> None:
        for uuid, found in self._in_parallel(self._survey.provider, uuids):
            if found is None:
                self._file.forget_providers([uuid])
            else:
                self._file.put_provider(uuid, found)
            self._advance(total, 1)

    def _read_consumers(self) -> set[str]:
        """Read consumers whose allocations differ; the providers that are to be read again."""
        seen, generations = _by_consumer(self._file)
        known = dict(self._file.consumers())
        self._file.forget_consumers(known.keys() - seen.keys())
        wanted = [
            uuid
            for uuid, held in seen.items()
            if uuid not in known
            or known[uuid].allocations != held
            or not generations[uuid] <= {known[uuid].generation}
        ]
        dirty: set[str] = set()
        for uuid, found in self._in_parallel(self._survey.consumer, wanted):
            if found is None:
                self._file.forget_consumers([uuid])
                dirty.update(seen[uuid])
            else:
                self._file.put_consumer(uuid, found)
                if found.allocations != seen[uuid] or not generations[uuid] <= {found.generation}:
                    dirty.update(seen[uuid], found.allocations)
        return dirty

    def _names_are_known(self, listed: Iterable[ProviderBody]) -> bool:
        """Read the names, and tell whether all names in use are among them."""
        self._copied.classes = sorted(self._survey.server.known_resource_classes())
        self._copied.traits = sorted(self._survey.server.trait_names())
        classes, traits = set(self._copied.classes), set(self._copied.traits)
        return all(
            classes.issuperset(found.inventories) and traits.issuperset(found.traits)
            for found in (self._file.provider(body["uuid"]) for body in listed)
        )

    def _wrong_projects(self) -> set[str]:
        """The providers of projects that use something else than their consumers have."""
        used: dict[str, Counter[str]] = {}
        for _, consumer in self._file.consumers():
            amounts = used.setdefault(consumer.project, Counter())
            for held in consumer.allocations.values():
                amounts.update(held)
        wrong = {
            project
            for project, found in self._in_parallel(self._survey.project_usages, used)
            if {name: amount for name, amount in found.items() if amount} != dict(used[project])
        }
        return {
            uuid
            for _, consumer in self._file.consumers()
            if consumer.project in wrong
            for uuid in consumer.allocations
        }

    def _in_parallel(
        self, read: Callable[[str], T], names: Iterable[str]
    ) -> Iterator[tuple[str, T]]:
        """What is read of each name, in order. Few answers are in memory at once."""
        wanted = list(names)
        answers = in_order(wanted, read, self._concurrency)
        for number, found in enumerate(zip(wanted, answers, strict=True), 1):
            yield found
            if number % _KEPT_TOGETHER == 0:
                self._file.commit()
        self._file.commit()


def _as_set(listed: Iterable[ProviderBody]) -> set[tuple[Any, ...]]:
    return {tuple(body[name] for name in PROVIDER_FIELDS) for body in listed}


def _by_consumer(file: SurveyFile) -> tuple[dict[str, dict[str, Any]], dict[str, set[int]]]:
    """What providers tell of consumers: allocations by provider, and the generations."""
    found: dict[str, dict[str, Any]] = {}
    generations: dict[str, set[int]] = {}
    for uuid in file.generations():
        provider = file.provider(uuid)
        for consumer, held in provider.allocations.items():
            found.setdefault(consumer, {})[uuid] = dict(held)
            told = provider.consumer_generations.get(consumer)
            generations.setdefault(consumer, set()).update(() if told is None else {told})
    return found, generations
