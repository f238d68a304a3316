"""Names of owners, and the traits that mark the providers which an owner created."""

from __future__ import annotations

import re

from roost.client.errors import NotConfigured

DEFAULT_OWNER = "agent"
"""The owner that `roost agent` writes under, if it is given no other."""

OWNER_LENGTH_MAX = 100

MARK = "CUSTOM_ROOST_OWNER_"
"""Begins the traits that mark providers. Operators have traits of their own, so it names Roost."""


def owner_name(text: str) -> str:
    """The name of an owner in its one spelling.

    The trait of an owner has neither case nor punctuation, so the name has neither.

    >>> owner_name("Rack_Agent.7")
    'rack-agent-7'
    """
    name = re.sub(r"[_.]", "-", text.lower())
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", name) or len(name) > OWNER_LENGTH_MAX:
        raise NotConfigured(
            f"{text!r} cannot be an owner: use up to {OWNER_LENGTH_MAX} letters, digits, '_', '.' "
            "and '-'"
        )
    return name


def trait_of_owner(owner: str) -> str:
    """The trait that marks the providers which this owner created.

    >>> trait_of_owner("rack-agent")
    'CUSTOM_ROOST_OWNER_RACK_AGENT'
    """
    return MARK + _in_trait(owner)


def older_traits_of_owner(owner: str) -> frozenset[str]:
    """The traits that marked the providers of this owner once.

    An operator may have given such a trait to a provider of its own, so the trait alone proves
    nothing.

    >>> sorted(older_traits_of_owner("nova"))
    ['CUSTOM_OWNER_NOVA', 'OWNER_NOVA']
    """
    name = f"OWNER_{_in_trait(owner)}"
    return frozenset({name, f"CUSTOM_{name}"})


def is_owner_trait(trait: str) -> bool:
    """Whether a trait marks the providers of some owner."""
    return trait.startswith(MARK)


def owner_of_trait(trait: str) -> str | None:
    """The owner whose providers a trait marks; `None` if the trait marks none.

    >>> owner_of_trait("CUSTOM_ROOST_OWNER_RACK_AGENT"), owner_of_trait("CUSTOM_GOLD")
    ('rack-agent', None)
    """
    if not is_owner_trait(trait):
        return None
    return trait.removeprefix(MARK).lower().replace("_", "-")


def _in_trait(owner: str) -> str:
    return owner_name(owner).upper().replace("-", "_")
