"""Changes that `roost whatif` imagines: from options to the JSON that a server takes. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from roost.cli.request.query_text import UnreadableRequest
from roost.cli.request.words import RequestWord
from roost.model.identifiers import is_uuid

ImaginedChange: TypeAlias = dict[str, Any]

CHANGES_MAX = 100
"""The number of changes that a server takes at once."""

_SEVERAL = re.compile(r"([1-9][0-9]{0,4})\*(.+)\Z")
# A name of a provider may have colons, as the address of a device has.
_INVENTORY = re.compile(
    r"(?P<host>.+):(?P<name>[A-Za-z0-9_]+?)(?:\.(?P<field>[a-z_]+))?=(?P<value>[0-9]+(?:\.[0-9]+)?)\Z"
)
_TRAIT = re.compile(r"(?P<host>.+):(?P<name>[A-Za-z0-9_]+)\Z")
_FIELDS = ("total", "reserved", "min_unit", "max_unit", "step_size", "allocation_ratio")


def read_changes(
    words: Iterable[RequestWord], query_of: Callable[[str], str]
) -> list[ImaginedChange]:
    """The changes among these words, in their order; `query_of` makes a query of a claim's text.

    >>> read_changes([RequestWord("--drain", "compute-1"), RequestWord("", "VCPU=4")], str)
    [{'drain': 'compute-1'}]
    """
    changes: list[ImaginedChange] = []
    for option, value in words:
        if option == "--claim":
            times, text = _several(value)
            changes += [{"claim": {"query": query_of(text), "order": "first"}}] * times
        elif option in _CHANGES:
            changes.append(_CHANGES[option](value))
    if len(changes) > CHANGES_MAX:
        raise UnreadableRequest(
            f"{len(changes)} changes are more than the {CHANGES_MAX} that a server imagines at "
            "once. Leave some out; each claim counts as one."
        )
    return changes


def named_providers(changes: Iterable[ImaginedChange]) -> Iterator[str]:
    """The providers that these changes name.

    >>> list(named_providers([{"drain": "a"}, {"add": {"like": "b"}}, {"release": "c"}]))
    ['a', 'b']
    """
    for change in changes:
        for kind, value in change.items():
            if kind in ("drain", "remove"):
                yield value
            elif kind in ("add", "inventory", "traits"):
                yield value.get("like") or value["provider"]


def _several(value: str) -> tuple[int, str]:
    """A number of times, and the rest.

    >>> _several("3*compute-1"), _several("compute-1")
    ((3, 'compute-1'), (1, 'compute-1'))
    """
    found = _SEVERAL.match(value)
    return (int(found[1]), found[2]) if found else (1, value)


def _addition(value: str) -> ImaginedChange:
    count, like = _several(value)
    return {"add": {"like": like, "count": count}}


def _inventory(value: str) -> ImaginedChange:
    """A field of an inventory, which is the total if none is named.

    >>> _inventory("compute-1:VCPU.reserved=2")
    {'inventory': {'provider': 'compute-1', 'resource_class': 'VCPU', 'reserved': 2}}
    """
    found = _INVENTORY.match(value)
    field = found["field"] or "total" if found else ""
    if found is None or field not in _FIELDS:
        raise UnreadableRequest(
            f"--set {value}: write a provider, a resource class and an amount, as in "
            f"--set compute-1:VCPU=64 or compute-1:VCPU.reserved=2. Fields: {', '.join(_FIELDS)}."
        )
    is_ratio = field == "allocation_ratio"
    if "." in found["value"] and not is_ratio:
        raise UnreadableRequest(f"--set {value}: {field} is a whole number, such as 64.")
    amount = float(found["value"]) if is_ratio else int(found["value"])
    return {
        "inventory": {
            "provider": found["host"],
            "resource_class": found["name"].upper(),
            field: amount,
        }
    }


def _trait(value: str, option: str, key: str) -> ImaginedChange:
    found = _TRAIT.match(value)
    if found is None:
        raise UnreadableRequest(
            f"{option} {value}: write a provider and a trait, as in {option} compute-1:CUSTOM_GOLD"
        )
    return {"traits": {"provider": found["host"], key: [found["name"].upper()]}}


def _release(value: str) -> ImaginedChange:
    if not is_uuid(value):
        raise UnreadableRequest(
            f"--release {value}: consumers have uuids only. `roost consumer list` prints them."
        )
    return {"release": value}


_CHANGES: Mapping[str, Callable[[str], ImaginedChange]] = {
    "--drain": lambda value: {"drain": value},
    "--remove": lambda value: {"remove": value},
    "--add-host": _addition,
    "--set": _inventory,
    "--add-trait": lambda value: _trait(value, "--add-trait", "add"),
    "--drop-trait": lambda value: _trait(value, "--drop-trait", "remove"),
    "--release": _release,
}

CHANGE_OPTIONS = frozenset({"--claim", *_CHANGES})
"""The options that imagine a change."""
