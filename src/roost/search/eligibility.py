"""Who could serve a demand: the stages that providers of a block pass, as columns.

Room comes first: it alone is found without looking at every provider, and what has no room is
most of a full cloud. Traits, aggregates and in_tree look only at what is left.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roost.search.account import Account
from roost.search.block import Block, IndexColumn
from roost.search.plan import Conditions, Demand, Plan


@dataclass(frozen=True, slots=True)
class _Report:
    """Tells the account of one demand, if somebody keeps one."""

    account: Account | None
    number: int
    demand: Demand
    block: Block

    def left(self, constraint: str, places: IndexColumn) -> None:
        if self.account is not None:
            self.account.providers_left(
                self.number, self.demand.suffixes, constraint, self.block, places
            )


def eligible_places(
    plan: Plan,
    demand_number: int,
    block: Block,
    block_number: int,
    *,
    alone: bool = False,
    account: Account | None = None,
) -> IndexColumn:
    """The providers of a block that can serve a demand of the plan.

    `alone`: without the help of their root, as providers that serve other trees.
    """
    demand = plan.demands[demand_number]
    report = _Report(account, demand_number, demand, block)
    conditions = demand.conditions
    places = _with_room(block, demand, report)
    if conditions.traits is not None:
        places = places[conditions.traits[block.traits[places]]]
        report.left("traits", places)
    if conditions.member_of is not None or conditions.not_member_of is not None:
        places = _in_aggregates(block, places, conditions, alone=alone)
        report.left("member_of", places)
    if conditions.home is not None:
        here = conditions.home.block == block_number
        places = places[block.trees[places] == conditions.home.tree] if here else places[:0]
        report.left("in_tree", places)
    return places


def _with_room(block: Block, demand: Demand, report: _Report) -> IndexColumn:
    if not demand.needs:
        return np.arange(len(block), dtype=np.int32)
    places: IndexColumn | None = None
    for need in demand.needs:
        stock = block.stocks.get(need.class_id)
        found = np.empty(0, np.int32) if stock is None else stock.places[stock.fits(need.amount)]
        places = found if places is None else _both(places, found, len(block))
        report.left(f"room for {need.amount} of class {need.class_id}", places)
        if report.account is None and not len(places):
            break
    assert places is not None
    return places


def _both(places: IndexColumn, others: IndexColumn, size: int) -> IndexColumn:
    """The places that are in both columns."""
    present = np.zeros(size, np.bool_)
    present[others] = True
    return places[present[places]]


def _in_aggregates(
    block: Block, places: IndexColumn, conditions: Conditions, *, alone: bool
) -> IndexColumn:
    with_root = conditions.spanning and not alone
    own = block.aggregates[places]
    roots = block.aggregates[block.starts[block.trees[places]]] if with_root else own
    if conditions.member_of is None:
        passed = np.ones(len(places), np.bool_)
    else:
        # The root spans its tree: it may be the member instead, but only for all or nothing.
        passed = conditions.member_of[own] | conditions.member_of[roots]
    if conditions.not_member_of is not None:
        passed = passed & conditions.not_member_of[own] & conditions.not_member_of[roots]
    return places[passed]
