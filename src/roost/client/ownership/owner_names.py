"""Names of owners, as a command or an agent is given them."""

from __future__ import annotations

from roost.client.errors import NotConfigured
from roost.model.trees.owner_names import OWNER_LENGTH_MAX, canonical_owner

DEFAULT_OWNER = "agent"
"""The owner that `roost agent` writes under, if it is given no other."""


def owner_name(text: str) -> str:
    """The name of an owner in its one spelling; `NotConfigured` if the text is no name.

    >>> owner_name("Rack_Agent.7")
    'rack-agent-7'
    """
    name = canonical_owner(text)
    if name is None:
        raise NotConfigured(
            f"{text!r} cannot be an owner: use up to {OWNER_LENGTH_MAX} letters, digits, '_', '.' "
            "and '-'"
        )
    return name
