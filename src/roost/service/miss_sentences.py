"""Sentences about what a tree lacks, with names and numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from roost.search.lack import Lack, Miss


def uuids_in(misses: Iterable[Miss]) -> set[str]:
    """The uuids of all providers that the sentences name."""
    found: set[str] = set()
    for miss in misses:
        found.add(miss.root)
        found.update(lack.provider for lack in miss.lacks if lack.provider is not None)
    return found


def lack_sentence(lack: Lack, root: str, names: Mapping[str, str]) -> str:
    """What the tree of a root lacks; `names` has the names of providers by uuid."""
    provider = None if lack.provider is None else names.get(lack.provider, lack.provider)
    return f"{lack.condition.lack_text(lack, names.get(root, root), provider)}."
