"""How deep a tree of providers from a file or from a server may be."""

from __future__ import annotations

from collections.abc import Mapping

LEVELS_MAX = 50
"""How many levels a tree may have. Trees of hosts have three to five.

Commands nest a tree in YAML and JSON as deep as it is. Each level takes two levels of YAML, and
its reader calls itself three times for each of these; Python allows about 1000 calls.
"""


def providers_too_deep(parents: Mapping[str, str | None]) -> list[str]:
    """The providers on the first level beyond the limit, out of each provider's parent.

    >>> chain = {str(number): str(number - 1) for number in range(1, 60)}
    >>> providers_too_deep({"0": None, **chain})
    ['50']
    """
    children: dict[str | None, list[str]] = {}
    for provider, parent in parents.items():
        children.setdefault(parent, []).append(provider)
    level = children.get(None, [])
    for _ in range(LEVELS_MAX):
        level = [child for provider in level for child in children.get(provider, ())]
    return level
