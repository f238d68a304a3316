"""The scan of a block: from whole columns to the problems of single trees.

The scan looks at a single tree only if every requirement and every trait choice has a provider
there: in a full cloud those trees are few.

A search skips a block whose outline shows that no tree fits (`may_fit`). To look at an outline
takes a few microseconds, to look at the columns of a block fifty or more. That matters in a large
cloud if few trees fit the query.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from roost.search.candidates.plan import Plan
from roost.search.candidates.rules import ContestedClass, Rules
from roost.search.candidates.sharing import Reach
from roost.search.candidates.solving.problem import Problem
from roost.search.conditions.condition import BlockView, RootCondition
from roost.search.conditions.requirement import Requirement, eligible_indexes
from roost.search.conditions.stages import GroupStage, TreeStage
from roost.search.forest.block import Block
from roost.search.forest.forest import Forest, TreeRef
from roost.search.forest.rows import BoolColumn, IndexColumn, IntColumn, SetMask

# What tells the problem of a tree from other problems: its piece of every column.
_ProblemKey: TypeAlias = tuple[bytes, ...]

_FIRST_TREES = 32
_VALUE_BYTES = np.dtype(np.int64).itemsize


class AlikeTrees(NamedTuple):
    """Trees of one block that pose the same problem."""

    block_number: int
    tree_numbers: list[int]
    problem: Problem


class EligibleTrees(NamedTuple):
    """The trees of a block in which every requirement and every trait choice has a provider."""

    # For each requirement, the indexes of the providers of the block that meet it.
    eligible: list[IndexColumn]
    tree_numbers: IndexColumn


def scan_block(forest: Forest, block_number: int, rules: Rules) -> Iterator[AlikeTrees]:
    """The trees of a block that may have a solution, alike trees together."""
    found = eligible_trees(forest, block_number, rules)
    if found is not None:
        yield from alike_trees(forest.blocks[block_number], block_number, rules, found)


def eligible_trees(forest: Forest, block_number: int, rules: Rules) -> EligibleTrees | None:
    """The trees of a block that may have a solution; `None` if there is none."""
    plan, block = rules.plan, forest.blocks[block_number]
    view = BlockView(block, block_number)
    alive = _trees(plan.root_conditions, view)
    eligible: list[IndexColumn] = []
    for requirement, reach_mask in zip(
        plan.requirements, rules.sharing_providers.reach_masks, strict=True
    ):
        if not alive.any():
            return None
        rules.effort.pause()
        indexes = eligible_indexes(requirement, view)
        eligible.append(indexes)
        alive &= trees_with(block, indexes, reach_mask)
    return with_trait_choices(block, rules, eligible, alive)


def with_trait_choices(
    block: Block, rules: Rules, eligible: list[IndexColumn], alive: BoolColumn
) -> EligibleTrees | None:
    """Of these trees, those in which every trait choice has a provider; `None` without any.

    `eligible` has the eligible providers of the block for each requirement.
    """
    for choice in rules.plan.trait_choices:
        if not alive.any():
            return None
        rules.effort.pause()
        alive = alive & _trees_that_meet(block, rules, eligible, choice)
    tree_numbers = np.flatnonzero(alive).astype(np.int32)
    return EligibleTrees(eligible, tree_numbers) if len(tree_numbers) else None


def anchors(plan: Plan, view: BlockView) -> BoolColumn:
    """The trees that may be an anchor, by root_required and in_tree."""
    return _trees([its for its in plan.root_conditions if its.stage is TreeStage.ROOT], view)


def _trees(conditions: Iterable[RootCondition], view: BlockView) -> BoolColumn:
    """The trees whose roots meet these conditions."""
    alive = np.ones(view.block.tree_count, np.bool_)
    for condition in conditions:
        alive &= condition.trees(view)
    return alive


def trees_with(block: Block, indexes: IndexColumn, reach_mask: SetMask) -> BoolColumn:
    """The trees that have one of these providers, or that a sharing provider reaches."""
    found = np.zeros(block.tree_count, np.bool_)
    found[block.tree_numbers[indexes]] = True
    return found if reach_mask is None else found | reach_mask[block.tree_aggregate_set_numbers]


def _trees_that_meet(
    block: Block, rules: Rules, eligible: list[IndexColumn], choice: BoolColumn
) -> BoolColumn:
    """The trees in which an eligible provider of the unsuffixed group meets a trait choice."""
    found = np.zeros(block.tree_count, np.bool_)
    for requirement_index in rules.unsuffixed_requirement_indexes:
        indexes = eligible[requirement_index]
        found[block.tree_numbers[indexes[choice[block.trait_set_numbers[indexes]]]]] = True
        reach_mask = rules.sharing_providers.reach_masks[requirement_index]
        if reach_mask is not None:
            # The solver checks whether it is this sharing provider that has the traits.
            found |= reach_mask[block.tree_aggregate_set_numbers]
    return found


class _TreeColumn:
    """A column that is cut into the pieces of single trees.

    A piece is bytes: bytes make good keys, and cost less than a tuple of integers.
    """

    def __init__(self, values: npt.NDArray[np.integer], begins: IntColumn, ends: IntColumn) -> None:
        self._values = values.astype(np.int64)
        self._begins = begins
        self._ends = ends

    def pieces(self) -> list[bytes]:
        """The piece of each tree."""
        data = self._values.tobytes()
        begins = (self._begins * _VALUE_BYTES).tolist()
        ends = (self._ends * _VALUE_BYTES).tolist()
        return [data[begin:end] for begin, end in zip(begins, ends, strict=True)]

    def common_piece(self) -> bytes | None:
        """The piece that all trees have; `None` if they differ."""
        begins = self._begins
        length = self._ends[0] - begins[0]
        if not (self._ends - begins == length).all():
            return None
        if len(self._values) == len(begins) * length:
            # The pieces follow each other without a gap, as usual: no row is copied.
            rows = self._values.reshape(len(begins), length)
        else:
            rows = self._values[begins[:, None] + np.arange(length)]
        return rows[0].tobytes() if (rows == rows[0]).all() else None


def alike_trees(
    block: Block, block_number: int, rules: Rules, found: EligibleTrees
) -> Iterator[AlikeTrees]:
    """The trees, those together that pose the same problem."""
    eligible, tree_numbers = found
    # The first few trees come first: a query for ten candidates does not wait for all trees.
    for some_tree_numbers in (tree_numbers[:_FIRST_TREES], tree_numbers[_FIRST_TREES:]):
        if not len(some_tree_numbers):
            return
        columns = list(_tree_columns(block, rules, eligible, some_tree_numbers))
        for key, alike in _trees_by_key(columns, some_tree_numbers.tolist()):
            rules.effort.pause()
            problem = _problem(rules, key)
            if rules.sharing_providers:
                yield from _trees_by_reach(block, block_number, rules, problem, alike)
            else:
                yield AlikeTrees(block_number, alike, problem)


def _trees_by_key(
    columns: list[_TreeColumn], tree_numbers: list[int]
) -> Iterable[tuple[_ProblemKey, list[int]]]:
    """The trees by what tells their problems apart."""
    # Usually neighbours are hosts of one kind: then no work for single trees is needed.
    common = [column.common_piece() for column in columns]
    key = tuple(piece for piece in common if piece is not None)
    if len(key) == len(columns):
        return ((key, tree_numbers),)
    together: dict[_ProblemKey, list[int]] = {}
    keys = zip(*[column.pieces() for column in columns], strict=True)
    for key, tree_number in zip(keys, tree_numbers, strict=True):
        together.setdefault(key, []).append(tree_number)
    return together.items()


def _tree_columns(
    block: Block, rules: Rules, eligible: list[IndexColumn], tree_numbers: IndexColumn
) -> Iterator[_TreeColumn]:
    """Everything that tells problems apart; `_problem` reads it in the same order."""
    starts, ends = block.starts[tree_numbers], block.starts[tree_numbers + 1]
    are_neighbours = tree_numbers[-1] - tree_numbers[0] == len(tree_numbers) - 1
    # The first few trees have a small share of the providers, so only that share is cut out.
    near: list[IndexColumn] = []
    bounds: list[tuple[IntColumn, IntColumn]] = []
    for indexes in eligible:
        if are_neighbours:
            # Each tree ends where the next one starts.
            edges = indexes.searchsorted(block.starts[tree_numbers[0] : tree_numbers[-1] + 2])
            begins, stops = edges[:-1], edges[1:]
        else:
            begins, stops = indexes.searchsorted(starts), indexes.searchsorted(ends)
        first = begins[0]
        near.append(indexes[first : stops[-1]])
        bounds.append((begins - first, stops - first))
    for requirement_index, indexes in enumerate(near):
        yield _TreeColumn(
            indexes - block.starts[block.tree_numbers[indexes]], *bounds[requirement_index]
        )
    for contested, requirement_index in rules.contested_requirement_indexes:
        yield _TreeColumn(
            _usable_rooms(block, near[requirement_index], contested), *bounds[requirement_index]
        )
    for requirement_index in rules.unsuffixed_requirement_indexes:
        for column in rules.trait_choice_columns(block.trait_set_numbers[near[requirement_index]]):
            yield _TreeColumn(column, *bounds[requirement_index])
    if rules.plan.same_subtrees:
        begin, end = int(starts[0]), int(ends[-1])
        parents = block.parents[begin:end]
        offsets = np.where(parents < 0, -1, parents - block.starts[block.tree_numbers[begin:end]])
        yield _TreeColumn(
            offsets, (starts - begin).astype(np.int64), (ends - begin).astype(np.int64)
        )


def _usable_rooms(block: Block, indexes: IndexColumn, contested: ContestedClass) -> IntColumn:
    inventory = block.inventories.get(contested.class_id)
    if inventory is None:
        return np.empty(0, np.int64)
    room: IntColumn = inventory.room[np.searchsorted(inventory.indexes, indexes)]
    usable: IntColumn = np.minimum(room, contested.total) // contested.unit * contested.unit
    return usable


def _problem(rules: Rules, key: _ProblemKey) -> Problem:
    # Not by numpy, which takes almost twice as long for columns as short as these.
    columns = map(_integers, key)
    providers = tuple([next(columns) for _ in rules.plan.requirements])
    usable_rooms = tuple([next(columns) for _ in rules.contested_requirement_indexes])
    met_trait_choices = tuple(
        [
            rules.joined_trait_choices([next(columns) for _ in rules.trait_choice_words])
            for _ in rules.unsuffixed_requirement_indexes
        ]
    )
    parents = next(columns) if rules.plan.same_subtrees else ()
    return Problem(providers, usable_rooms, met_trait_choices, parents)


def _integers(piece: bytes) -> tuple[int, ...]:
    return tuple(memoryview(piece).cast("q"))


def _trees_by_reach(
    block: Block, block_number: int, rules: Rules, problem: Problem, tree_numbers: list[int]
) -> Iterator[AlikeTrees]:
    """The trees again, those together that the same sharing providers reach."""
    together: dict[Reach, list[int]] = {}
    for tree_number in tree_numbers:
        reach = rules.sharing_providers.reach(
            TreeRef(block_number, tree_number), int(block.tree_aggregate_set_numbers[tree_number])
        )
        together.setdefault(reach, []).append(tree_number)
    for reach, reached in together.items():
        yield AlikeTrees(block_number, reached, _with_sharing(problem, rules, reach))


def _with_sharing(problem: Problem, rules: Rules, reach: Reach) -> Problem:
    """The problem with the sharing providers that reach the tree."""
    providers = rules.sharing_providers.providers
    return Problem(
        tuple(
            own + tuple(~sharing_number for sharing_number in reach[requirement_index])
            for requirement_index, own in enumerate(problem.providers)
        ),
        tuple(
            own
            + tuple(
                rules.usable_sharing_room(sharing_number, contested)
                for sharing_number in reach[requirement_index]
            )
            for own, (contested, requirement_index) in zip(
                problem.usable_rooms, rules.contested_requirement_indexes, strict=True
            )
        ),
        tuple(
            own
            + tuple(
                rules.trait_choices_of(providers[sharing_number].trait_set_number)
                for sharing_number in reach[requirement_index]
            )
            for own, requirement_index in zip(
                problem.met_trait_choices, rules.unsuffixed_requirement_indexes, strict=True
            )
        ),
        problem.parents,
    )


def problem_in(forest: Forest, tree: TreeRef, rules: Rules) -> Problem | None:
    """The problem of one tree; `None` if the tree is no anchor or a requirement has no provider."""
    plan, block = rules.plan, forest.blocks[tree.block_number]
    view = BlockView(block, tree.block_number)
    if not _trees(plan.root_conditions, view)[tree.tree_number]:
        return None
    eligible = [eligible_indexes(requirement, view) for requirement in plan.requirements]
    tree_numbers = np.asarray([tree.tree_number], np.int32)
    columns = _tree_columns(block, rules, eligible, tree_numbers)
    problem = _problem(rules, tuple(column.pieces()[0] for column in columns))
    if rules.sharing_providers:
        (alike,) = _trees_by_reach(block, tree.block_number, rules, problem, [tree.tree_number])
        problem = alike.problem
    return problem if all(problem.providers) else None


def may_fit(rules: Rules, block: Block, block_number: int) -> bool:
    """Whether a tree of the block may have a candidate, as far as the outline shows."""
    plan, trait_set_numbers = rules.plan, block.outline.trait_set_numbers
    view = BlockView(block, block_number)
    for condition in plan.root_conditions:
        if condition.excludes(view):
            return False
    reach_masks = rules.sharing_providers.reach_masks
    for requirement, reach_mask in zip(plan.requirements, reach_masks, strict=True):
        # The outline does not show which trees a sharing provider reaches.
        if reach_mask is None and excluding_stage(requirement, view) is not None:
            return False
    if any(
        reach_masks[requirement_index] is not None
        for requirement_index in rules.unsuffixed_requirement_indexes
    ):
        return True
    return all(choice[trait_set_numbers].any() for choice in plan.trait_choices)


def excluding_stage(requirement: Requirement, view: BlockView) -> GroupStage | None:
    """A stage that leaves no provider of the block, as far as the outline shows; `None` if none."""
    for condition in requirement.conditions:
        stage = condition.excluding_stage(view)
        if stage is not None:
            return stage
    return None
