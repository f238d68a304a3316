"""Changes of a query that let a tree meet it: for each lack, what a client may ask for instead."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

from roost.model import candidate_query_edits as edits
from roost.model.candidates import CandidateQuery
from roost.search.forest import Forest
from roost.search.lack import Lack, LackRule, LackStage, Miss, UnitRange

# How much a change takes from a client: the least comes first.
_MOVE_TRAIT: Final = 0.1
# From the least change of an amount to the largest.
_AMOUNT: Final = 0.2, 0.8
_DROP_RULE: Final = 0.4
_DROP_CONDITION: Final = 0.5
_DROP_CLASS: Final = 0.9
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


def changes_for(forest: Forest, query: CandidateQuery, miss: Miss, lack: Lack) -> list[QueryChange]:
    """The changes that may mend a lack of a tree."""
    suffixes = lack.groups or (() if lack.group is None else (lack.group,))
    return [
        *_mending(forest, query, miss, lack),
        *(drop_group(query, suffix) for suffix in suffixes),
    ]


def drop_in_tree(suffix: str) -> QueryChange:
    """Let a group take from any tree."""
    return QueryChange(
        ("in_tree", suffix),
        f"leave in_tree{suffix} out",
        _DROP_CONDITION,
        partial(edits.without_in_tree, suffix=suffix),
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
    if lack.rule is LackRule.IN_TREE:
        yield drop_in_tree(suffix)
    elif lack.rule in (LackRule.MEMBER_OF, LackRule.NOT_MEMBER_OF):
        yield _drop_aggregates(query, suffix, lack)
    elif lack.stage is LackStage.ROOT:
        yield _drop_root_trait(lack)
    elif lack.rule is LackRule.FORBIDDEN:
        yield _allow_trait(query, suffix, lack.traits[0])
    elif lack.rule in (LackRule.REQUIRED, LackRule.REQUIRED_TOGETHER):
        yield from _trait_changes(forest, query, miss, lack)
    elif lack.rule is LackRule.CAPACITY:
        yield from _capacity_changes(query, lack)
    elif lack.rule is LackRule.ISOLATE:
        yield QueryChange(
            ("group_policy",),
            "let groups share a provider (group_policy=none)",
            _DROP_RULE,
            edits.without_isolation,
        )
    elif lack.rule is LackRule.SAME_SUBTREE:
        yield _drop_subtree(frozenset(lack.groups))
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
            yield _change_amount(query, suffix, name, possible)
    if len(resources) > 1:
        yield QueryChange(
            ("amount", suffix, name),
            f"ask for no {name}{_place(query, suffix)}",
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


def _change_amount(query: CandidateQuery, suffix: str, name: str, amount: int) -> QueryChange:
    wanted = edits.group_of(query, suffix).resources[name]
    least, most = _AMOUNT
    return QueryChange(
        ("amount", suffix, name),
        f"ask for {amount} {name} instead of {wanted}{_place(query, suffix)}",
        least + (most - least) * abs(wanted - amount) / max(wanted, amount),
        partial(edits.with_amount, suffix=suffix, name=name, amount=amount),
    )


def _capacity_changes(query: CandidateQuery, lack: Lack) -> Iterator[QueryChange]:
    name = lack.resource_class
    if name is None or lack.wanted is None or lack.free is None or lack.free >= lack.wanted:
        return
    # The last group gives way first.
    for suffix in reversed(lack.groups):
        left = edits.group_of(query, suffix).resources[name] - (lack.wanted - lack.free)
        if left > 0:
            yield _change_amount(query, suffix, name, left)


def _drop_subtree(suffixes: frozenset[str]) -> QueryChange:
    listing = ",".join(sorted(suffixes))
    return QueryChange(
        ("same_subtree", listing),
        f"leave same_subtree={listing} out",
        _DROP_RULE,
        partial(edits.without_same_subtree, suffixes=suffixes),
    )


def _trait_changes(
    forest: Forest, query: CandidateQuery, miss: Miss, lack: Lack
) -> Iterator[QueryChange]:
    """Drop a required trait, or ask the root for it if the root has it."""
    suffix = lack.group or ""
    block = forest.blocks[miss.tree.block_number]
    root = int(block.starts[miss.tree.tree_number])
    held = forest.trait_sets[int(block.trait_set_numbers[root])]
    choices = [lack.traits]
    if lack.rule is LackRule.REQUIRED_TOGETHER:
        choices = edits.trait_choices_of(edits.group_of(query, suffix).traits)
    for names in choices:
        subject = ("required", suffix, *names)
        yield QueryChange(
            subject,
            f"do not require {' or '.join(names)}{_place(query, suffix)}",
            _DROP_CONDITION,
            partial(edits.without_required, suffix=suffix, names=names),
        )
        for name in names:
            if forest.vocabulary.trait_ids[name] in held and name not in query.root_required.names:
                yield QueryChange(
                    subject,
                    f"require {name} of the root (root_required), not{_place(query, suffix)}",
                    _MOVE_TRAIT,
                    partial(edits.with_root_trait, suffix=suffix, names=names, name=name),
                )


def _allow_trait(query: CandidateQuery, suffix: str, name: str) -> QueryChange:
    return QueryChange(
        ("forbidden", suffix, name),
        f"allow {name}{_place(query, suffix)}",
        _DROP_CONDITION,
        partial(edits.without_forbidden, suffix=suffix, name=name),
    )


def _drop_root_trait(lack: Lack) -> QueryChange:
    (name,) = lack.traits
    verb = "allow" if lack.rule is LackRule.FORBIDDEN else "do not require"
    return QueryChange(
        ("root_required", name),
        f"{verb} {name} of the root (root_required)",
        _DROP_CONDITION,
        partial(edits.without_root_trait, name=name),
    )


def _drop_aggregates(query: CandidateQuery, suffix: str, lack: Lack) -> QueryChange:
    uuids = lack.aggregates
    listing = f"{' or '.join(uuids)} (member_of){_place(query, suffix)}"
    if lack.rule is LackRule.NOT_MEMBER_OF:
        return QueryChange(
            ("not_member_of", suffix, *uuids),
            f"allow aggregate {listing}",
            _DROP_CONDITION,
            partial(edits.without_not_member_of, suffix=suffix, uuid=uuids[0]),
        )
    return QueryChange(
        ("member_of", suffix, *uuids),
        f"do not require aggregate {listing}",
        _DROP_CONDITION,
        partial(edits.without_member_of, suffix=suffix, uuids=uuids),
    )


def _place(query: CandidateQuery, suffix: str) -> str:
    """The group that a change is about, unless the query has only the unsuffixed one."""
    if suffix:
        return f" in group {suffix}"
    return " in the unsuffixed group" if len(query.groups) > 1 else ""
