"""Sentences about what a tree lacks, with names and numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from roost.model.text import listed
from roost.search.lack import Lack, LackRule, Miss


def uuids_in(misses: Iterable[Miss]) -> set[str]:
    """The uuids of all providers that the sentences name."""
    found: set[str] = set()
    for miss in misses:
        found.add(miss.root)
        found.update(lack.provider for lack in miss.lacks if lack.provider is not None)
    return found


def lack_sentence(lack: Lack, root: str, names: Mapping[str, str]) -> str:
    """What the tree of a root lacks; `names` has the names of providers by uuid.

    >>> lack = Lack(LackStage.TOGETHER, LackRule.SAME_SUBTREE, groups=("_a", "_b"))
    >>> lack_sentence(lack, "h", {"h": "n1"}).partition(" that fits")[0]
    'No provider of n1'
    """
    tree = names.get(root, root)
    provider = None if lack.provider is None else names.get(lack.provider, lack.provider)
    if lack.condition is not None:
        return f"{lack.condition.lack_text(lack, tree, provider)}."
    return f"{_together(lack, tree, provider)}."


def _together(lack: Lack, tree: str, provider: str | None) -> str:
    groups = listed(suffix or "without suffix" for suffix in lack.groups)
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
    traits = listed(lack.traits)
    return f"The providers of {tree} for the group without suffix do not have {traits} together"
