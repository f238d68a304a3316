"""Providers that a host cannot have, because providers of other trees have their names. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from roost.client.declaration import Declaration, DeclaredProvider


def without_providers_elsewhere(
    declaration: Declaration, elsewhere: Mapping[str, str]
) -> tuple[Declaration, tuple[str, ...]]:
    """The declaration without these providers and all below them; a line for each of them.

    `elsewhere` has the places of the existing providers by declared name. What the host already
    has of the providers below stays as it is.
    """
    kept: list[DeclaredProvider] = []
    left_out: set[str] = set()
    lines: list[str] = []
    for provider in declaration.providers:
        if provider.name in elsewhere:
            place = elsewhere[provider.name]
            lines.append(f"{provider.name}: not created, it exists {place}; move or rename that")
        elif provider.parent in left_out:
            lines.append(f"{provider.name}: waits for {provider.parent}")
        else:
            kept.append(provider)
            continue
        left_out.add(provider.name)
    unread = replace(declaration.unread, names=declaration.unread.names | left_out)
    return Declaration(tuple(kept), unread), tuple(lines)
