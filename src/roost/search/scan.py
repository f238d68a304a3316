"""From a block to the problems of its trees: whole columns first, single trees last.

A tree is looked at by itself only if every demand has somebody there and every required item
is met by somebody: in a full cloud those are few.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from roost.search.account import Account
from roost.search.block import Block, IndexColumn
from roost.search.eligibility import eligible_places
from roost.search.forest import Forest, TreeRef
from roost.search.plan import Plan
from roost.search.problem import Contest, Problem, Rules
from roost.search.rows import BoolColumn, IntColumn
from roost.search.sharing import Lenders, Serving

# What tells the problem of a tree from others: its piece of every column.
_Key: TypeAlias = tuple[bytes, ...]

_FIRST_TREES = 32
_ITEM_BYTES = np.dtype(np.int64).itemsize


class TreeGroup(NamedTuple):
    """Trees of one block that pose the same problem."""

    block: int
    trees: list[int]
    problem: Problem


def scan_block(
    forest: Forest, number: int, rules: Rules, account: Account | None = None
) -> Iterator[TreeGroup]:
    """Those trees of a block that may have a solution, alike ones together."""
    plan, block = rules.plan, forest.blocks[number]
    alive = _anchors(plan, block, number)
    if account is not None:
        account.trees_left("roots", block, np.flatnonzero(alive))
    columns: list[IndexColumn] = []
    for demand in range(len(plan.demands)):
        if account is None and not alive.any():
            return
        rules.effort.pause()
        places = eligible_places(plan, demand, block, number, account=account)
        columns.append(places)
        alive &= _trees_with(block, places, rules.lenders.tables[demand])
    for item in range(len(plan.items)):
        if account is None and not alive.any():
            return
        rules.effort.pause()
        alive &= _trees_with_item(block, rules, columns, item)
    trees = np.flatnonzero(alive).astype(np.int32)
    if account is not None:
        account.trees_left("every group by itself", block, trees)
    if len(trees):
        yield from _groups(block, number, rules, columns, trees)


def _anchors(plan: Plan, block: Block, number: int) -> BoolColumn:
    """The trees whose root may be an anchor."""
    alive = np.ones(block.tree_count, np.bool_)
    if plan.anchor is not None:
        alive[:] = False
        if plan.anchor.block == number:
            alive[plan.anchor.tree] = True
    if plan.root_traits is not None:
        alive &= plan.root_traits[block.traits[block.roots]]
    if plan.root_aggregates is not None:
        alive &= plan.root_aggregates[block.aggregates[block.roots]]
    return alive


def _trees_with(block: Block, places: IndexColumn, lent: BoolColumn | None) -> BoolColumn:
    """The trees that have one of these providers, or to which somebody lends."""
    found = np.zeros(block.tree_count, np.bool_)
    found[block.trees[places]] = True
    return found if lent is None else found | lent[block.tree_aggregates]


def _trees_with_item(
    block: Block, rules: Rules, columns: list[IndexColumn], item: int
) -> BoolColumn:
    """The trees in which somebody who may serve the unsuffixed group has a required item."""
    table = rules.plan.items[item]
    found = np.zeros(block.tree_count, np.bool_)
    for demand in rules.spanning:
        places = columns[demand]
        found[block.trees[places[table[block.traits[places]]]]] = True
        lent = rules.lenders.tables[demand]
        if lent is not None:
            # Whether it is the right lender is seen when the tree is looked at by itself.
            found |= lent[block.tree_aggregates]
    return found


class _Slices:
    """A column of numbers to be cut into the pieces of single trees.

    A piece is taken as bytes: they make good keys, and cost less than a tuple of numbers.
    """

    def __init__(self, values: npt.NDArray[np.integer], begins: IntColumn, ends: IntColumn) -> None:
        self._values = values.astype(np.int64)
        self._begins = begins
        self._ends = ends

    def pieces(self, first: int, last: int) -> list[bytes]:
        """The piece of each tree from the first to before the last."""
        data = self._values.tobytes()
        begins = (self._begins[first:last] * _ITEM_BYTES).tolist()
        ends = (self._ends[first:last] * _ITEM_BYTES).tolist()
        return [data[begin:end] for begin, end in zip(begins, ends, strict=True)]

    def common_piece(self, first: int, last: int) -> bytes | None:
        """The piece that all these trees have; nothing if they differ."""
        begins = self._begins[first:last]
        length = self._ends[first] - begins[0]
        if not (self._ends[first:last] - begins == length).all():
            return None
        rows = self._values[begins[:, None] + np.arange(length)]
        return rows[0].tobytes() if (rows == rows[0]).all() else None


def _groups(
    block: Block, number: int, rules: Rules, columns: list[IndexColumn], trees: IndexColumn
) -> Iterator[TreeGroup]:
    """The trees, those together that pose the same problem."""
    slices = list(_slices(block, rules, columns, trees))
    # The first few by themselves: who wants ten candidates does not wait for the others.
    for first, last in ((0, _FIRST_TREES), (_FIRST_TREES, len(trees))):
        members = trees[first:last].tolist()
        for key, alike in _alike(slices, first, last, members):
            rules.effort.pause()
            problem = _problem(rules, key)
            if rules.lenders:
                yield from _with_lenders(block, number, rules, problem, alike)
            else:
                yield TreeGroup(number, alike, problem)


def _alike(
    slices: list[_Slices], first: int, last: int, trees: list[int]
) -> Iterable[tuple[_Key, list[int]]]:
    """The trees by what tells their problems apart."""
    if not trees:
        return ()
    # Rows of hosts of one kind are the rule: then nothing has to be done for each of them.
    common = [column.common_piece(first, last) for column in slices]
    key = tuple(piece for piece in common if piece is not None)
    if len(key) == len(slices):
        return ((key, trees),)
    together: dict[_Key, list[int]] = {}
    keys = zip(*[column.pieces(first, last) for column in slices], strict=True)
    for key, tree in zip(keys, trees, strict=True):
        together.setdefault(key, []).append(tree)
    return together.items()


def _slices(
    block: Block, rules: Rules, columns: list[IndexColumn], trees: IndexColumn
) -> Iterator[_Slices]:
    """Everything that tells problems apart; `_problem` reads it in the same order."""
    starts, ends = block.starts[trees].astype(np.int64), block.starts[trees + 1].astype(np.int64)
    bounds = [
        (np.searchsorted(places, starts), np.searchsorted(places, ends)) for places in columns
    ]
    for demand, places in enumerate(columns):
        yield _Slices(places - block.starts[block.trees[places]], *bounds[demand])
    for contest, demand in rules.contested:
        yield _Slices(_rooms(block, columns[demand], contest), *bounds[demand])
    for demand in rules.spanning:
        for word in rules.item_words(block.traits[columns[demand]]):
            yield _Slices(word, *bounds[demand])
    if rules.plan.subtrees:
        first = block.starts[block.trees]
        yield _Slices(np.where(block.parents < 0, -1, block.parents - first), starts, ends)


def _rooms(block: Block, places: IndexColumn, contest: Contest) -> IntColumn:
    stock = block.stocks.get(contest.class_id)
    if stock is None:
        return np.empty(0, np.int64)
    room: IntColumn = stock.room[np.searchsorted(stock.places, places)]
    useful: IntColumn = np.minimum(room, contest.total) // contest.unit * contest.unit
    return useful


def _problem(rules: Rules, key: _Key) -> Problem:
    # Not by numpy, which takes almost twice as long for columns as short as these.
    columns = map(_numbers, key)
    providers = tuple([next(columns) for _ in rules.plan.demands])
    rooms = tuple([next(columns) for _ in rules.contested])
    items = tuple(
        [rules.joined_words([next(columns) for _ in rules.words]) for _ in rules.spanning]
    )
    parents = next(columns) if rules.plan.subtrees else ()
    return Problem(providers, rooms, items, parents)


def _numbers(piece: bytes) -> tuple[int, ...]:
    return tuple(memoryview(piece).cast("q"))


def _with_lenders(
    block: Block, number: int, rules: Rules, problem: Problem, trees: list[int]
) -> Iterator[TreeGroup]:
    """The trees again, those together to which the same providers lend."""
    together: dict[Serving, list[int]] = {}
    for tree in trees:
        serving = rules.lenders.serving(TreeRef(number, tree), int(block.tree_aggregates[tree]))
        together.setdefault(serving, []).append(tree)
    for serving, members in together.items():
        yield TreeGroup(number, members, _lent_to(problem, rules, serving))


def _lent_room(lenders: Lenders, number: int, contest: Contest) -> int:
    room = min(lenders.room(lenders.members[number], contest.class_id), contest.total)
    return room - room % contest.unit


def _lent_to(problem: Problem, rules: Rules, serving: Serving) -> Problem:
    """The problem with those added who lend."""
    lenders = rules.lenders
    return Problem(
        tuple(
            own + tuple(~lender for lender in serving[demand])
            for demand, own in enumerate(problem.providers)
        ),
        tuple(
            own + tuple(_lent_room(lenders, lender, contest) for lender in serving[demand])
            for own, (contest, demand) in zip(problem.rooms, rules.contested, strict=True)
        ),
        tuple(
            own
            + tuple(rules.items_of(lenders.members[lender].traits) for lender in serving[demand])
            for own, demand in zip(problem.items, rules.spanning, strict=True)
        ),
        problem.parents,
    )
