"""The notation of allocation candidates, and the comparison of an answer with it.

A candidate is written `N[VCPU:1] R[MEM:1] {''=N+R}`: the allocations, then the mappings. A test
may write only the allocations, only the mappings, or only the providers of the allocations, `N+R`.
Semicolons separate candidates; `none` stands for an empty answer. No order matters.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from support.worlds.notation import short_name

NONE = "none"

_ALLOCATION = re.compile(r"(\w+)\[([^\]]*)\]")
_MAPPINGS = re.compile(r"\{(.*)\}")

Allocations = Mapping[str, Mapping[str, int]]
Mappings = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class CandidateNote:
    """A candidate with names instead of uuids. Below 1.34 it has no mappings."""

    allocations: Allocations
    mappings: Mappings | None = None

    def __str__(self) -> str:
        return self.forms()[0]

    def forms(self) -> list[str]:
        """All forms of the candidate in the notation, the fullest first."""
        allocations = _write_allocations(self.allocations)
        forms = [allocations, "+".join(sorted(self.allocations))]
        if self.mappings is not None:
            mappings = _write_mappings(self.mappings)
            forms = [f"{allocations} {mappings}", *forms, mappings]
        return forms

    def taken(self) -> Counter[str]:
        """The total amount of each class in the allocations."""
        taken: Counter[str] = Counter()
        for amounts in self.allocations.values():
            taken.update(amounts)
        return taken


def _write_allocations(allocations: Allocations) -> str:
    return " ".join(
        f"{name}[{','.join(f'{kind}:{amount}' for kind, amount in sorted(amounts.items()))}]"
        for name, amounts in sorted(allocations.items())
    )


def _write_mappings(mappings: Mappings) -> str:
    pairs = (
        f"{suffix or repr('')}={'+'.join(sorted(names))}"
        for suffix, names in sorted(mappings.items())
    )
    return f"{{{' '.join(pairs)}}}"


def parse_candidates(text: str) -> list[str]:
    """The candidates of an expected answer, each in a normal form.

    >>> parse_candidates("R[VCPU:1,MEM:2] N[GOLD:1]; SS+H; {_2=N+R _1=N}")
    ['N[GOLD:1] R[MEM:2,VCPU:1]', 'H+SS', '{_1=N _2=N+R}']
    >>> parse_candidates("none")
    []
    """
    if text == NONE:
        return []
    return [_normal(piece.strip()) for piece in text.split(";")]


def _normal(text: str) -> str:
    left_over = _MAPPINGS.sub("", _ALLOCATION.sub("", text)).strip()
    if left_over == text and re.fullmatch(r"\w+(\+\w+)*", text):
        return "+".join(sorted(text.split("+")))
    if left_over or not text:
        raise ValueError(f"not a candidate: {text!r}")
    parts = []
    allocations = {
        name: {kind: int(amount) for kind, amount in _pairs(amounts, ",", ":")}
        for name, amounts in _ALLOCATION.findall(text)
    }
    if allocations:
        parts.append(_write_allocations(allocations))
    found = _MAPPINGS.search(text)
    if found is not None:
        pairs = _pairs(found[1], " ", "=")
        mappings = {suffix.strip("'"): names.split("+") for suffix, names in pairs}
        parts.append(_write_mappings(mappings))
    return " ".join(parts)


def _pairs(text: str, between: str, inside: str) -> list[tuple[str, str]]:
    pieces = (piece.partition(inside) for piece in text.split(between))
    return [(left, right) for left, _, right in pieces]


def read_candidates(body: Any, names: Mapping[str, str]) -> list[CandidateNote]:
    """The candidates of an answer of any version."""
    return [
        CandidateNote(
            allocations=_read_allocations(entry["allocations"], names),
            mappings=_read_mappings(entry["mappings"], names) if "mappings" in entry else None,
        )
        for entry in body["allocation_requests"]
    ]


def _read_allocations(allocations: Any, names: Mapping[str, str]) -> Allocations:
    if isinstance(allocations, list):
        pairs = [(entry["resource_provider"]["uuid"], entry) for entry in allocations]
    else:
        pairs = list(allocations.items())
    return {
        names[uuid]: {short_name(kind): amount for kind, amount in entry["resources"].items()}
        for uuid, entry in pairs
    }


def _read_mappings(mappings: Any, names: Mapping[str, str]) -> Mappings:
    return {suffix: [names[uuid] for uuid in uuids] for suffix, uuids in mappings.items()}


def differences(
    expected: Sequence[str], found: Sequence[CandidateNote]
) -> tuple[list[str], list[str]]:
    """The candidates that are missing, and the unexpected ones."""
    missing = Counter(expected)
    surplus = []
    for candidate in found:
        form = next((form for form in candidate.forms() if missing[form] > 0), None)
        if form is None:
            surplus.append(str(candidate))
        else:
            missing[form] -= 1
    return sorted(missing.elements()), sorted(surplus)
