"""Checks of what a driver declares: an error names the provider and what is wrong. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence, Set

from roost.client.declaration import Declaration, DeclaredProvider
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
    if not isinstance(declared.providers, Sequence):
        raise _refusal(f"declares {_kind(declared.providers)} instead of a tuple of providers")
    names: set[str] = set()
    for provider in declared.providers:
        if not isinstance(provider, DeclaredProvider):
            raise _refusal(f"declares {_kind(provider)} instead of a DeclaredProvider")
        for problem in _problems(provider, names):
            raise _refusal(f"declares provider {provider.name!r}, {problem}")
        names.add(provider.name)
    if names and nodename not in names:
        raise _refusal(f"declares no provider {nodename}, which is the host: declare it first")
    return declared


def _problems(provider: DeclaredProvider, before: Set[str]) -> Iterator[str]:
    name, parent = provider.name, provider.parent
    if not _is_name(name):
        yield f"whose name is no text of 1 to {_NAME_LENGTH_MAX} characters"
    elif name in before:
        yield "which it has declared before: give each provider a name of its own"
    if parent is not None and not (isinstance(parent, str) and parent in before):
        yield f"below {parent!r}, which is not declared before it: declare parents first"
    if provider.uuid is not None and not is_uuid(provider.uuid):
        yield f"whose uuid is {provider.uuid!r}: give a UUID, or None"
    for what in ("traits", "aggregates"):
        found = getattr(provider, what)
        if not isinstance(found, Set) or not all(isinstance(each, str) for each in found):
            yield f"whose {what} are no frozenset of texts"
    yield from _inventory_problems(provider.inventories)


def _is_name(name: object) -> bool:
    if not isinstance(name, str) or not 1 <= len(name) <= _NAME_LENGTH_MAX:
        return False
    # Python has texts that cannot be sent to a server.
    return name == name.encode(errors="replace").decode()


def _inventory_problems(inventories: object) -> Iterator[str]:
    if not isinstance(inventories, Mapping):
        yield f"whose inventories are {_kind(inventories)} instead of a dict"
        return
    for resource_class, fields in inventories.items():
        if not isinstance(resource_class, str):
            yield f"with the resource class {resource_class!r}, which is no text"
        elif not isinstance(fields, Mapping) or "total" not in fields:
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
