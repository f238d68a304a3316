"""Changes of a query that let a tree meet it: for each lack, what a client may ask for instead."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from roost.model import candidate_query_edits as edits
from roost.model.candidates import CandidateQuery
from roost.model.query_change import (
    DROP_CONDITION,
    QueryChange,
    change_amount,
    place,
    trait_changes,
    unlike,
)
from roost.search.forest import Forest
from roost.search.lack import Lack, LackRule, LackStage, Miss, UnitRange

# How much a change takes from a client; other changes take less.
_DROP_CLASS: Final = 0.9
_DROP_GROUP: Final = 1.0


def changes_for(forest: Forest, query: CandidateQuery, miss: Miss, lack: Lack) -> list[QueryChange]:
    """The changes that may mend a lack of a tree."""
    suffixes = lack.groups or (() if lack.group is None else (lack.group,))
    return [
        *_mending(forest, query, miss, lack),
        *(drop_group(query, suffix) for suffix in unlike(query, suffixes)),
    ]


def drop_in_tree(suffix: str) -> QueryChange:
    """Let a group take from any tree."""
    return QueryChange(
        ("in_tree", suffix),
        f"leave in_tree{suffix} out",
        DROP_CONDITION,
        partial(edits.without_in_tree, suffix=suffix),
    )


def drop_in_subtree(suffix: str) -> QueryChange:
    """Let a group take from any subtree."""
    return QueryChange(
        ("in_subtree", suffix),
        f"leave in_subtree{suffix} out",
        DROP_CONDITION,
        partial(edits.without_in_subtree, suffix=suffix),
    )


def drop_group(query: CandidateQuery, suffix: str) -> QueryChange:
    """Ask for nothing of what a group asks for."""
    return QueryChange(
        ("group", suffix),
        f"leave {f'group {suffix}' if suffix else 'the unsuffixed group'} out",
        _DROP_GROUP + len(edits.group_of(query, suffix).resources) / 1000,
        partial(edits.without_group, suffix=suffix),
    )


def _mending(
    forest: Forest, query: CandidateQuery, miss: Miss, lack: Lack
) -> Iterator[QueryChange]:
    suffix = lack.group or ""
    if lack.condition is not None:
        yield from lack.condition.changes(query, lack)
    elif lack.rule is LackRule.IN_TREE:
        yield drop_in_tree(suffix)
    elif lack.rule is LackRule.IN_SUBTREE:
        yield drop_in_subtree(suffix)
    elif lack.rule in (LackRule.MEMBER_OF, LackRule.NOT_MEMBER_OF):
        yield _drop_aggregates(query, suffix, lack)
    elif lack.stage is LackStage.ROOT:
        yield _drop_root_trait(lack)
    elif lack.rule is LackRule.FORBIDDEN:
        yield _allow_trait(query, suffix, lack.traits[0])
    elif lack.rule is LackRule.REQUIRED:
        yield from _trait_changes(forest, query, miss, lack)
    else:
        yield from _amount_changes(query, suffix, lack)


def _amount_changes(query: CandidateQuery, suffix: str, lack: Lack) -> Iterator[QueryChange]:
    name = lack.resource_class
    if name is None:
        return
    resources = edits.group_of(query, suffix).resources
    if lack.units is not None and lack.free is not None:
        possible = nearest_amount(resources[name], lack.free, lack.units)
        if possible is not None:
            yield change_amount(query, suffix, name, possible)
    if len(resources) > 1:
        yield QueryChange(
            ("amount", suffix, name),
            f"ask for no {name}{place(query, suffix)}",
            _DROP_CLASS,
            partial(edits.with_amount, suffix=suffix, name=name, amount=None),
        )


def nearest_amount(wanted: int, free: int, units: UnitRange) -> int | None:
    """The largest amount below the wanted one that the inventory takes, else the smallest above.

    >>> nearest_amount(64, 28, UnitRange(1, 100, 8)), nearest_amount(1, 28, UnitRange(3, 9, 2))
    (24, 4)
    """
    step, most = units.step_size, min(free, units.max_unit)
    least = -(-max(1, units.min_unit) // step) * step
    below = min(wanted, most) // step * step
    if below >= least:
        return below if below != wanted else None
    return least if least <= most else None


def _trait_changes(
    forest: Forest, query: CandidateQuery, miss: Miss, lack: Lack
) -> Iterator[QueryChange]:
    """Drop a required trait, or ask the root for it if the root has it."""
    block = forest.blocks[miss.tree.block_number]
    root = int(block.starts[miss.tree.tree_number])
    held = forest.trait_sets[int(block.trait_set_numbers[root])]
    on_root = {name for name in lack.traits if forest.vocabulary.trait_ids[name] in held}
    yield from trait_changes(query, lack.group or "", [lack.traits], on_root)


def _allow_trait(query: CandidateQuery, suffix: str, name: str) -> QueryChange:
    return QueryChange(
        ("forbidden", suffix, name),
        f"allow {name}{place(query, suffix)}",
        DROP_CONDITION,
        partial(edits.without_forbidden, suffix=suffix, name=name),
    )


def _drop_root_trait(lack: Lack) -> QueryChange:
    verb = "allow" if lack.rule is LackRule.FORBIDDEN else "do not require"
    return QueryChange(
        ("root_required", *lack.traits),
        f"{verb} {' or '.join(lack.traits)} of the root (root_required)",
        DROP_CONDITION,
        partial(edits.without_root_choice, names=lack.traits),
    )


def _drop_aggregates(query: CandidateQuery, suffix: str, lack: Lack) -> QueryChange:
    uuids = lack.aggregates
    listing = f"{' or '.join(uuids)} (member_of){place(query, suffix)}"
    if lack.rule is LackRule.NOT_MEMBER_OF:
        return QueryChange(
            ("not_member_of", suffix, *uuids),
            f"allow aggregate {listing}",
            DROP_CONDITION,
            partial(edits.without_not_member_of, suffix=suffix, uuid=uuids[0]),
        )
    return QueryChange(
        ("member_of", suffix, *uuids),
        f"do not require aggregate {listing}",
        DROP_CONDITION,
        partial(edits.without_member_of, suffix=suffix, uuids=uuids),
    )
