"""Changes of a query that let a tree meet it: for each lack, what a client may ask for instead."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from roost.model import candidate_query_edits as edits
from roost.model.candidates import CandidateQuery
from roost.model.query_change import DROP_RULE, QueryChange, change_amount, trait_changes, unlike
from roost.search.lack import Lack, LackRule

# How much a change takes from a client; other changes take less.
_DROP_GROUP: Final = 1.0


def changes_for(query: CandidateQuery, lack: Lack) -> list[QueryChange]:
    """The changes that may mend a lack of a tree."""
    suffixes = lack.groups or (() if lack.group is None else (lack.group,))
    mending = _joint_changes if lack.condition is None else lack.condition.changes
    return [
        *mending(query, lack),
        *(drop_group(query, suffix) for suffix in unlike(query, suffixes)),
    ]


def drop_group(query: CandidateQuery, suffix: str) -> QueryChange:
    """Ask for nothing of what a group asks for."""
    return QueryChange(
        ("group", suffix),
        f"leave {f'group {suffix}' if suffix else 'the unsuffixed group'} out",
        _DROP_GROUP + len(edits.group_of(query, suffix).resources) / 1000,
        partial(edits.without_group, suffix=suffix),
    )


def _joint_changes(query: CandidateQuery, lack: Lack) -> Iterator[QueryChange]:
    if lack.rule is LackRule.CAPACITY:
        yield from _capacity_changes(query, lack)
    elif lack.rule is LackRule.ISOLATE:
        yield QueryChange(
            ("group_policy",),
            "let groups share a provider (group_policy=none)",
            DROP_RULE,
            edits.without_isolation,
        )
    elif lack.rule is LackRule.SAME_SUBTREE:
        yield _drop_subtree(frozenset(lack.groups))
    else:
        choices = edits.trait_choices_of(edits.group_of(query, "").traits)
        yield from trait_changes(query, "", choices, lack.root_traits)


def _capacity_changes(query: CandidateQuery, lack: Lack) -> Iterator[QueryChange]:
    name = lack.resource_class
    if name is None or lack.wanted is None or lack.free is None or lack.free >= lack.wanted:
        return
    # The last group gives way first.
    for suffix in unlike(query, lack.groups[::-1]):
        left = edits.group_of(query, suffix).resources[name] - (lack.wanted - lack.free)
        if left > 0:
            yield change_amount(query, suffix, name, left)


def _drop_subtree(suffixes: frozenset[str]) -> QueryChange:
    listing = ",".join(sorted(suffixes))
    return QueryChange(
        ("same_subtree", listing),
        f"leave same_subtree={listing} out",
        DROP_RULE,
        partial(edits.without_same_subtree, suffixes=suffixes),
    )
