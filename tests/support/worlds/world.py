"""A world in notation that the API has made, and the check of its answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol
from uuid import uuid4

from support.api_client import Answer, ApiClient
from support.worlds.candidate_notation import (
    NONE,
    CandidateNote,
    differences,
    parse_candidates,
    read_candidates,
)
from support.worlds.notation import (
    CUSTOM_CLASSES,
    CUSTOM_TRAITS,
    ProviderNote,
    aggregate_uuid,
    long_name,
    parse_world,
    provider_uuid,
    requested_amounts,
    short_name,
    write_query,
)

LATEST = "1.39"


@dataclass(frozen=True)
class Reply:
    """An answer with candidates, with names instead of uuids."""

    answer: Answer
    candidates: Sequence[CandidateNote]
    summaries: Mapping[str, Any]

    def __str__(self) -> str:
        return "; ".join(sorted(map(str, self.candidates))) or NONE


class World:
    """The providers of a text, alone in their database."""

    def __init__(self, api: ApiClient, text: str, path: str = "/allocation_candidates") -> None:
        self.api = api
        self.text = text
        self._path = path
        self._providers = {provider.name: provider for provider in parse_world(text)}
        self._names = {provider_uuid(name): name for name in self._providers}

    def extended(self) -> World:
        """The same providers, asked in the extended grammar."""
        return World(self.api, self.text, "/roost/candidates")

    def names(self) -> Mapping[str, str]:
        """The names of the providers by uuid."""
        return self._names

    def send(self, query: str, version: str = LATEST) -> Answer:
        """The bare response to a request."""
        return self.api.at(version).get(f"{self._path}?{write_query(query)}")

    def ask(self, query: str, version: str = LATEST) -> Reply:
        """The answer to a request, with the checks that hold for every answer."""
        answer = self.send(query, version)
        if answer.status != 200:
            self._fail(query, version, f"answered:   {answer.status} {answer.body.decode()}")
        body = answer.json
        reply = Reply(
            answer=answer,
            candidates=read_candidates(body, self._names),
            summaries={self._names[u]: shown for u, shown in body["provider_summaries"].items()},
        )
        complaints = [
            f"{complaint}: {candidate}"
            for candidate in reply.candidates
            for complaint in _complaints(query, candidate)
        ]
        shown, due = sorted(reply.summaries), sorted(self._summarised(reply, version))
        if shown != due:
            complaints.append(f"summaries of {', '.join(shown)} instead of {', '.join(due)}")
        if complaints:
            self._fail(query, version, *complaints)
        return reply

    def expect(
        self, query: str, answer: str, summaries: str | None = None, version: str = LATEST
    ) -> None:
        """Ask, and compare with an answer in notation: `none`, candidates, or `400 sentence`."""
        if answer.startswith("400 "):
            self._expect_refusal(query, answer.removeprefix("400 "), version)
            return
        reply = self.ask(query, version)
        missing, surplus = differences(parse_candidates(answer), reply.candidates)
        shown = ", ".join(sorted(reply.summaries))
        lines = [f"answered:   {reply}"]
        lines += [f"missing:    {candidate}" for candidate in missing]
        lines += [f"unexpected: {candidate}" for candidate in surplus]
        if summaries is not None and shown != summaries:
            lines.append(f"summaries:  {shown} instead of {summaries}")
        if len(lines) > 1:
            self._fail(query, version, f"expected:   {answer}", *lines)

    def _expect_refusal(self, query: str, sentence: str, version: str) -> None:
        answer = self.send(query, version)
        if answer.status != 400 or sentence not in answer.detail:
            found = f"answered:   {answer.status} {answer.body.decode()}"
            self._fail(query, version, f"expected:   400 {sentence}", found)

    def _summarised(self, reply: Reply, version: str) -> set[str]:
        """The providers that the summaries must show."""
        giving = {name for candidate in reply.candidates for name in candidate.allocations}
        if int(version.removeprefix("1.")) < 29:
            return giving
        roots = {self._root_of(name) for name in giving}
        return {name for name in self._providers if self._root_of(name) in roots}

    def _root_of(self, name: str) -> str:
        parent = self._providers[name].parent
        return name if parent is None else self._root_of(parent)

    def _fail(self, query: str, version: str, *lines: str) -> NoReturn:
        head = [f"world:      {self.text}", f"request:    {query} at {version}"]
        raise AssertionError("\n".join(["", *head, *lines]))


# Makes the world of a text. Tests only read the world, so that several tests can share it.
Worlds = Callable[[str], World]


class Configured(Protocol):
    """Makes the world of a text for a service with these lines in its configuration."""

    def __call__(self, text: str, *lines: str) -> World: ...


def _complaints(query: str, candidate: CandidateNote) -> list[str]:
    """The faults of a candidate that are faults in every world."""
    groups = requested_amounts(query)
    complaints = []
    if "or_resources" not in query and candidate.taken() != sum(groups.values(), Counter()):
        complaints.append("amounts that the request does not ask for")
    mappings = candidate.mappings
    if mappings is None:
        return complaints
    if set(mappings) != set(groups):
        complaints.append("mappings of other groups")
    elif any(suffix and len(names) != 1 for suffix, names in mappings.items()):
        complaints.append("a suffixed group with several providers")
    elif any(len(names) != len(set(names)) for names in mappings.values()):
        complaints.append("a provider twice in one mapping")
    elif {name for suffix in groups if groups[suffix] for name in mappings[suffix]} != set(
        candidate.allocations
    ):
        complaints.append("mappings that do not fit the allocations")
    return complaints


def build_world(api: ApiClient, text: str) -> World:
    """Make the providers of a world, in the order of the text."""
    for name in CUSTOM_TRAITS:
        _done(api.put(f"/traits/{name}"))
    for name in CUSTOM_CLASSES:
        _done(api.put(f"/resource_classes/{name}"))
    for provider in parse_world(text):
        _make_provider(api, provider)
    return World(api, text)


def _make_provider(api: ApiClient, provider: ProviderNote) -> None:
    body: dict[str, Any] = {"name": provider.name, "uuid": provider_uuid(provider.name)}
    if provider.parent is not None:
        body["parent_provider_uuid"] = provider_uuid(provider.parent)
    _done(api.post("/resource_providers", body))
    if provider.aggregates:
        aggregates = [aggregate_uuid(name) for name in provider.aggregates]
        replace(api, provider.name, "aggregates", aggregates)
    if provider.traits:
        replace(api, provider.name, "traits", provider.traits)
    held = {kind: note.used for kind, note in provider.inventories.items() if note.used}
    if held:
        # First an inventory for exactly the used amount: the final one may be smaller.
        room = {kind: {"total": sum(amounts)} for kind, amounts in held.items()}
        replace(api, provider.name, "inventories", room)
        for kind, amounts in held.items():
            for amount in amounts:
                claim(api, provider.name, kind, amount)
    if provider.inventories:
        fields = {kind: note.fields for kind, note in provider.inventories.items()}
        replace(api, provider.name, "inventories", fields)


def claim(api: ApiClient, name: str, kind: str, amount: int) -> str:
    """Allocate resources of a provider to a new consumer. Returns the consumer."""
    consumer = str(uuid4())
    body = {
        "allocations": {provider_uuid(name): {"resources": {long_name(kind): amount}}},
        "project_id": "lab",
        "user_id": "ann",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    _done(api.put(f"/allocations/{consumer}", body))
    return consumer


def replace(api: ApiClient, name: str, what: str, values: Any) -> None:
    """Replace the `inventories`, `traits` or `aggregates` of a provider."""
    path = f"/resource_providers/{provider_uuid(name)}"
    generation = api.get(path).json["generation"]
    _done(api.put(f"{path}/{what}", {what: values, "resource_provider_generation": generation}))


def _done(answer: Answer) -> None:
    if answer.status >= 300:
        raise AssertionError(f"{answer.status}: {answer.body.decode()}")


def shown_classes(summaries: Mapping[str, Any]) -> str:
    """The classes in each summary: `F: MEM, VCPU; N: VCPU`."""
    return "; ".join(
        f"{name}: {', '.join(sorted(map(short_name, summary['resources'])))}".rstrip(": ")
        for name, summary in sorted(summaries.items())
    )
