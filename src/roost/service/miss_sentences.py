"""Sentences about what a tree lacks, with names and numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from roost.search.lack import Lack, LackRule, LackStage, Miss

# A sentence has this many names, and says how many more there are.
_NAMES_MAX = 6


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
    if lack.stage is LackStage.TOGETHER:
        return f"{_together(lack, tree, provider)}."
    return f"{_alone(lack, tree, provider)}."


def _alone(lack: Lack, tree: str, provider: str | None) -> str:
    if lack.rule in (LackRule.INVENTORY, LackRule.UNITS, LackRule.ROOM):
        return _by_amount(lack, tree, provider)
    if lack.rule is LackRule.FORBIDDEN:
        return f"{provider} has the forbidden trait {lack.traits[0]}"
    if lack.rule is LackRule.REQUIRED:
        return f"{provider} has no trait {_listed(lack.traits, 'or')}"
    if lack.rule is LackRule.IN_TREE:
        return f"{provider} is not in the tree that in_tree names"
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


def _by_aggregates(lack: Lack, tree: str, provider: str | None) -> str:
    listing = _listed(lack.aggregates, "or")
    if lack.rule is LackRule.NOT_MEMBER_OF:
        return f"{provider} is in the forbidden aggregate {listing}"
    if lack.rule is LackRule.MEMBER_OF:
        return f"{provider} is not in aggregate {listing}"
    # A sharing provider that does not reach the tree.
    given = lack.resource_class or "it"
    if not lack.aggregates:
        return f"{provider} could share {given}, but it is in no aggregate"
    return f"{provider} could share {given}, but no provider of {tree} is in aggregate {listing}"


def _together(lack: Lack, tree: str, provider: str | None) -> str:
    groups = _listed([suffix or "without suffix" for suffix in lack.groups], "and")
    if lack.rule is LackRule.CAPACITY:
        where = "The providers that fit them have" if provider is None else f"{provider} has"
        short = lack.free is not None and lack.wanted is not None and lack.free < lack.wanted
        parts = "" if short else " in parts that do not suffice"
        return (
            f"{where} {lack.free} {lack.resource_class} free{parts}, "
            f"groups {groups} want {lack.wanted} together"
        )
    if lack.rule is LackRule.ISOLATE:
        return (
            f"Only {lack.free} of the {lack.wanted} groups {groups} can have a provider of their "
            f"own in {tree} (group_policy=isolate)"
        )
    if lack.rule is LackRule.SAME_SUBTREE:
        return (
            f"No provider of {tree} that fits one of the groups {groups} is above those that fit "
            "the rest (same_subtree)"
        )
    if lack.rule is LackRule.REQUIRED_TOGETHER:
        traits = _listed(lack.traits, "and")
        return f"The providers of {tree} for the group without suffix do not have {traits} together"
    traits = _listed(lack.traits, "or")
    return f"No provider of {tree} for the group without suffix has trait {traits}"


def _are(amount: int | None) -> str:
    return "is" if amount == 1 else "are"


def _listed(names: Iterable[str], word: str) -> str:
    """The names in one phrase.

    >>> _listed(["a", "b", "c"], "or")
    'a, b or c'
    """
    all_names = list(names)
    more = len(all_names) - _NAMES_MAX
    if more > 1:
        all_names = [*all_names[:_NAMES_MAX], f"{more} more"]
    *first, last = all_names or [""]
    return f"{', '.join(first)} {word} {last}" if first else last
