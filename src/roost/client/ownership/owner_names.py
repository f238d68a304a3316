"""Names of owners, and the traits that mark the providers which an owner created."""

from __future__ import annotations

import re
from collections.abc import Iterable

from roost.client.errors import NotConfigured


def owner_name(text: str) -> str:
    """The name of an owner in its one spelling.

    The trait of an owner has neither case nor punctuation, so the name has neither.

    >>> owner_name("Rack_Agent.7")
    'rack-agent-7'
    """
    name = re.sub(r"[_.]", "-", text.lower())
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,99}", name):
        raise NotConfigured(
            f"{text!r} cannot be an owner: use up to 100 letters, digits, '_', '.' and '-'"
        )
    return name


def trait_of_owner(owner: str, standard_traits: Iterable[str]) -> str:
    """The trait that marks the providers which this owner created.

    >>> trait_of_owner("nova", ["OWNER_NOVA"]), trait_of_owner("rack-agent", ["OWNER_NOVA"])
    ('OWNER_NOVA', 'CUSTOM_OWNER_RACK_AGENT')
    """
    name = "OWNER_" + owner_name(owner).upper().replace("-", "_")
    return name if name in standard_traits else f"CUSTOM_{name}"


def is_owner_trait(trait: str) -> bool:
    """Whether a trait marks the providers of some owner."""
    return trait.startswith(("OWNER_", "CUSTOM_OWNER_"))


def owner_of_trait(trait: str) -> str | None:
    """The owner whose providers a trait marks; `None` if the trait marks none.

    >>> owner_of_trait(trait_of_owner("rack-agent", ())), owner_of_trait("CUSTOM_GOLD")
    ('rack-agent', None)
    """
    if not is_owner_trait(trait):
        return None
    return trait.partition("OWNER_")[2].lower().replace("_", "-")
