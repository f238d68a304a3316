"""Changes of a query for candidates: what a client may ask for instead, in words and as an edit."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from roost.model.candidate_query import edits
from roost.model.candidate_query.query import CandidateQuery, RequestGroup

# How much a change takes from a client: the least comes first.
_MOVE_TRAIT: Final = 0.1
# From the least change of an amount to the largest.
_AMOUNT: Final = 0.2, 0.8
DROP_RULE: Final = 0.4
DROP_CONDITION: Final = 0.5
DROP_CLASS: Final = 0.9
_DROP_GROUP: Final = 1.0


@dataclass(frozen=True, slots=True)
class QueryChange:
    """One change of a query."""

    # What it changes. Two changes of one subject are alternatives.
    subject: tuple[str, ...]
    # What a client does, as the beginning of a sentence.
    text: str
    cost: float
    apply: Callable[[CandidateQuery], CandidateQuery]

    @property
    def key(self) -> tuple[tuple[str, ...], str]:
        """What tells it from other changes."""
        return self.subject, self.text


def drop_condition(
    query: CandidateQuery,
    subject: tuple[str, str, *tuple[str, ...]],
    text: str,
    edit: Callable[[RequestGroup], RequestGroup],
) -> QueryChange:
    """Ask for less: the subject has the kind of a condition, the suffix of its group, and names."""
    apply = partial(edits.edited, suffix=subject[1], edit=edit)
    return QueryChange(subject, f"{text}{place(query, subject[1])}", DROP_CONDITION, apply)


def change_amount(query: CandidateQuery, suffix: str, name: str, amount: int) -> QueryChange:
    """Ask for another amount of a class in a group."""
    wanted = edits.group_of(query, suffix).resources[name]
    least, most = _AMOUNT
    return QueryChange(
        ("amount", suffix, name),
        f"ask for {amount:,} {name} instead of {wanted:,}{place(query, suffix)}",
        # The quotient comes first: an amount may have thousands of digits.
        least + (most - least) * (abs(wanted - amount) / max(wanted, amount)),
        partial(edits.with_amount, suffix=suffix, name=name, amount=amount),
    )


def trait_changes(
    query: CandidateQuery,
    suffix: str,
    choices: Iterable[tuple[str, ...]],
    root_traits: Collection[str],
) -> Iterator[QueryChange]:
    """Drop one of these trait choices of a group, or ask the root for it if the root has it."""
    for names in choices:
        subject = ("required", suffix, *names)
        yield QueryChange(
            subject,
            f"do not require {' or '.join(names)}{place(query, suffix)}",
            DROP_CONDITION,
            partial(edits.without_required, suffix=suffix, names=names),
        )
        for name in names:
            if name in root_traits and name not in query.root_required.names:
                yield QueryChange(
                    subject,
                    f"require {name} of the root (root_required), not{place(query, suffix)}",
                    _MOVE_TRAIT,
                    partial(edits.with_root_trait, suffix=suffix, names=names, name=name),
                )


def drop_group(query: CandidateQuery, suffix: str) -> QueryChange:
    """Ask for nothing of what a group asks for."""
    return QueryChange(
        ("group", suffix),
        f"leave {f'group {suffix}' if suffix else 'the unsuffixed group'} out",
        _DROP_GROUP + len(edits.group_of(query, suffix).resources) / 1000,
        partial(edits.without_group, suffix=suffix),
    )


def unlike(query: CandidateQuery, suffixes: Iterable[str]) -> list[str]:
    """The groups, of those that ask for the same only the first: the rest would do as well."""
    kept: list[RequestGroup] = []
    for suffix in suffixes:
        group = edits.group_of(query, suffix)
        if all(replace(group, suffix=its.suffix) != its for its in kept):
            kept.append(group)
    return [group.suffix for group in kept]


def place(query: CandidateQuery, suffix: str) -> str:
    """The group that a change is about, unless the query has only the unsuffixed one."""
    if suffix:
        return f" in group {suffix}"
    return " in the unsuffixed group" if len(query.groups) > 1 else ""
