"""Checks of what a driver declares: an error names the provider and what is wrong. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from roost.client.declaration import Declaration, DeclaredProvider, InventoryFields
from roost.client.errors import DeclarationRefused
from roost.model.identifiers import is_uuid

_NAME_LENGTH_MAX = 200


def checked_declaration(declared: object, nodename: str) -> Declaration:
    """The declaration of a driver; raises `DeclarationRefused` if it describes no host.

    A driver may be the work of any author, so its types are not taken for granted. An empty
    declaration is one: the driver finds nothing at all.
    """
    if not isinstance(declared, Declaration):
        raise _refusal(f"returns {_kind(declared)} instead of a Declaration")
    for provider in declared.providers:
        for problem in _problems(provider):
            raise _refusal(f"declares provider {provider.name!r}, {problem}")
    if declared.providers and nodename not in {root.name for root in declared.roots}:
        raise _refusal(f"declares no root {nodename}, which is the host: declare it first")
    return declared


def _problems(provider: DeclaredProvider) -> Iterator[str]:
    """What is wrong with a provider besides what its constructor refuses."""
    if not _is_name(provider.name):
        yield f"whose name is no text of 1 to {_NAME_LENGTH_MAX} characters"
    if provider.uuid is not None and not is_uuid(provider.uuid):
        yield f"whose uuid is {provider.uuid!r}: give a UUID, or None"
    for what in ("traits", "aggregates"):
        if not all(isinstance(each, str) for each in getattr(provider, what)):
            yield f"whose {what} are not all texts"
    yield from _inventory_problems(provider.inventories)


def _is_name(name: str) -> bool:
    if len(name) > _NAME_LENGTH_MAX:
        return False
    # Python has texts that cannot be sent to a server.
    return name == name.encode(errors="replace").decode()


def _inventory_problems(inventories: Mapping[str, InventoryFields]) -> Iterator[str]:
    for resource_class, fields in inventories.items():
        if not isinstance(resource_class, str):
            yield f"with the resource class {resource_class!r}, which is no text"
        elif "total" not in fields:
            yield f"whose {resource_class} is {fields!r}: write it as {{'total': 8}}"
        else:
            for field, value in fields.items():
                if not _is_number(value):
                    yield f"whose {resource_class} has the {field} {value!r}, which is no number"


def _is_number(value: object) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool)


def _kind(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}"


def _refusal(text: str) -> DeclarationRefused:
    return DeclarationRefused(f"The driver {text}")
