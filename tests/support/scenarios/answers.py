"""Answers of `GET /allocation_candidates`: their exact shape, and their faults."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from support.scenarios.oracle import (
    MAPPINGS,
    SUMMARY_TRAITS,
    Candidate,
    Query,
    Summaries,
    World,
    summaries,
)

DICTIONARY = 12


@dataclass(frozen=True)
class Found:
    """The content of an answer."""

    candidates: tuple[Candidate, ...]
    summaries: Summaries


def read_answer(body: Any, minor: int) -> Found:
    """The content of a body, which must have exactly the shape of the version."""
    assert body.keys() == {"allocation_requests", "provider_summaries"}
    read = [read_candidate(entry, minor) for entry in body["allocation_requests"]]
    shown = dict(body["provider_summaries"])
    if minor >= SUMMARY_TRAITS:
        shown = {uuid: {**its, "traits": sorted(its["traits"])} for uuid, its in shown.items()}
    return Found(tuple(read), shown)


def read_candidate(entry: Any, minor: int) -> Candidate:
    with_mappings = minor >= MAPPINGS
    assert entry.keys() == {"allocations", *(["mappings"] if with_mappings else [])}
    allocations = entry["allocations"]
    if minor < DICTIONARY:
        for item in allocations:
            assert item.keys() == {"resource_provider", "resources"}
            assert item["resource_provider"].keys() == {"uuid"}
        pairs = [(item["resource_provider"]["uuid"], item["resources"]) for item in allocations]
        assert len(dict(pairs)) == len(pairs)
    else:
        for item in allocations.values():
            assert item.keys() == {"resources"}
        pairs = [(uuid, item["resources"]) for uuid, item in allocations.items()]
    assert all(resources for _, resources in pairs)
    mappings = entry["mappings"] if with_mappings else {}
    for uuids in mappings.values():
        assert len(uuids) == len(set(uuids))
    return Candidate(
        frozenset((uuid, name, n) for uuid, its in pairs for name, n in its.items()),
        frozenset((suffix, frozenset(uuids)) for suffix, uuids in mappings.items()),
    )


def as_shown(candidates: Iterable[Candidate], minor: int) -> Counter[Candidate]:
    """The number of times each candidate appears in a complete answer of this version.

    Without mappings, several candidates may look alike.
    """
    if minor >= MAPPINGS:
        return Counter(candidates)
    return Counter(replace(candidate, mappings=frozenset()) for candidate in candidates)


def faults(world: World, query: Query, all_: set[Candidate], found: Found) -> Iterator[str]:
    """The faults of an answer, given the complete set of candidates."""
    wanted = as_shown(all_, query.minor)
    shown = Counter(found.candidates)
    if strange := shown.keys() - wanted.keys():
        yield f"no candidates: {describe(strange)}"
    # An answer may repeat candidates that differ only in mappings that it does not show.
    if twice := {its for its in shown.keys() & wanted.keys() if shown[its] > wanted[its]}:
        yield f"repeated: {describe(twice)}"
    if query.limit is None:
        if missing := wanted.keys() - shown.keys():
            yield f"missing: {describe(missing)}"
    else:
        least, most = min(query.limit, len(wanted)), min(query.limit, wanted.total())
        if not least <= shown.total() <= most:
            yield f"{shown.total()} candidates instead of {least} to {most}"
    yield from summary_faults(world, query, found)


def summary_faults(world: World, query: Query, found: Found) -> Iterator[str]:
    """The faults of the summaries, given the candidates of the same answer."""
    known = [its for its in found.candidates if its.givers <= world.providers.keys()]
    expected = summaries(world, query, known)
    if found.summaries != expected:
        uuids = found.summaries.keys() | expected.keys()
        for uuid in sorted(uuids):
            shown, right = found.summaries.get(uuid), expected.get(uuid)
            if shown != right:
                yield f"summary of {uuid}: {shown} instead of {right}"


def describe(candidates: Iterable[Candidate]) -> str:
    """The candidates, one line each."""
    lines = []
    for candidate in candidates:
        takes = " ".join(f"{uuid}[{name}:{n}]" for uuid, name, n in sorted(candidate.allocations))
        mapped = " ".join(
            f"{suffix or repr('')}={'+'.join(sorted(uuids))}"
            for suffix, uuids in sorted(candidate.mappings)
        )
        lines.append(f"\n  {takes} {{{mapped}}}")
    return "".join(sorted(lines))
