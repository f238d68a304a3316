"""Sentences about what a tree lacks, with names and numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from roost.model.text import listed
from roost.search.lack import Lack, LackRule, LackStage, Miss


def uuids_in(misses: Iterable[Miss]) -> set[str]:
    """The uuids of all providers that the sentences name."""
    found: set[str] = set()
    for miss in misses:
        found.add(miss.root)
        found.update(lack.provider for lack in miss.lacks if lack.provider is not None)
    return found


def lack_sentence(lack: Lack, root: str, names: Mapping[str, str]) -> str:
    """What the tree of a root lacks; `names` has the names of providers by uuid.

    >>> lack = Lack(
    ...     LackStage.ROOM, LackRule.ROOM, "_cpu", "n0", "PCPU", wanted=64, free=28
    ... )
    >>> lack_sentence(lack, "h", {"n0": "n1_numa0"})
    'n1_numa0 has 28 PCPU free, 64 are wanted.'
    """
    tree = names.get(root, root)
    provider = None if lack.provider is None else names.get(lack.provider, lack.provider)
    if lack.condition is not None:
        return f"{lack.condition.lack_text(lack, tree, provider)}."
    return f"{_alone(lack, tree, provider)}."


def _alone(lack: Lack, tree: str, provider: str | None) -> str:
    if lack.rule in (LackRule.INVENTORY, LackRule.UNITS, LackRule.ROOM):
        return _by_amount(lack, tree, provider)
    if lack.rule is LackRule.FORBIDDEN:
        return f"{provider} has the forbidden trait {lack.traits[0]}"
    if lack.stage is LackStage.TOGETHER:
        traits = listed(lack.traits, "or")
        return f"No provider of {tree} for the group without suffix has trait {traits}"
    if lack.rule is LackRule.REQUIRED:
        return f"{provider} has no trait {listed(lack.traits, 'or')}"
    if lack.rule in (LackRule.IN_TREE, LackRule.IN_SUBTREE):
        return _by_place(lack, provider)
    return _by_aggregates(lack, tree, provider)


def _by_amount(lack: Lack, tree: str, provider: str | None) -> str:
    if lack.rule is LackRule.INVENTORY:
        if provider is None:
            return f"No provider of {tree} has inventory of {lack.resource_class}"
        return f"{provider} has no inventory of {lack.resource_class}"
    wanted = f"{lack.wanted} {_are(lack.wanted)} wanted"
    if lack.rule is LackRule.UNITS and lack.units is not None:
        units = lack.units
        return (
            f"{provider} gives {lack.resource_class} from {units.min_unit} to {units.max_unit} "
            f"in steps of {units.step_size}, {wanted}"
        )
    return f"{provider} has {lack.free} {lack.resource_class} free, {wanted}"


def _by_place(lack: Lack, provider: str | None) -> str:
    if lack.rule is LackRule.IN_TREE:
        return f"{provider} is not in the tree that in_tree names"
    if lack.stage is LackStage.ROOT:
        return f"{provider} is not the root of the provider that in_subtree names"
    return f"{provider} is neither the provider that in_subtree names nor below it"


def _by_aggregates(lack: Lack, tree: str, provider: str | None) -> str:
    listing = listed(lack.aggregates, "or")
    if lack.rule is LackRule.NOT_MEMBER_OF:
        return f"{provider} is in the forbidden aggregate {listing}"
    if lack.rule is LackRule.MEMBER_OF:
        return f"{provider} is not in aggregate {listing}"
    # A sharing provider that does not reach the tree.
    given = lack.resource_class or "it"
    if not lack.aggregates:
        return f"{provider} could share {given}, but it is in no aggregate"
    return f"{provider} could share {given}, but no provider of {tree} is in aggregate {listing}"


def _are(amount: int | None) -> str:
    return "is" if amount == 1 else "are"
