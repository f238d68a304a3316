"""Names of owners, the traits that mark their providers, and the uuids of their children."""

from __future__ import annotations

import re
from uuid import UUID, uuid5

OWNER_LENGTH_MAX = 100

MARK = "CUSTOM_ROOST_OWNER_"
"""Begins the traits that mark providers. Operators have traits of their own, so it names Roost."""


def canonical_owner(text: str) -> str | None:
    """The name of an owner in its one spelling; `None` if the text is no name.

    The trait of an owner has neither case nor punctuation, so the name has neither.

    >>> canonical_owner("Rack_Agent.7"), canonical_owner("two words")
    ('rack-agent-7', None)
    """
    name = re.sub(r"[_.]", "-", text.lower())
    is_name = re.fullmatch(r"[a-z0-9][a-z0-9-]*", name) and len(name) <= OWNER_LENGTH_MAX
    return name if is_name else None


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


def child_uuid(root_uuid: str, owner_trait: str, name: str) -> str:
    """The uuid of a child, by the root that is declared above it, the owner and the child's name.

    A child that is created anew is the same provider. The owner is a part of it: if two owners
    create a child of one name at the same moment, the server tells which one did.

    >>> child_uuid("aaaaaaaa-1111-4111-8111-111111111111", "CUSTOM_ROOST_OWNER_ME", "host_disk_0")
    '32717707-8022-52b5-a601-6fb1c7ce5b1d'
    """
    return str(uuid5(UUID(root_uuid), f"{owner_trait}/{name}"))


def _in_trait(owner: str) -> str:
    return (canonical_owner(owner) or owner).upper().replace("-", "_")
