"""A short notation of worlds and of requests for allocation candidates.

A world is a list of providers. `R(VCPU 8, agg A B, T1)` is a root with inventory, two aggregates
and a trait. `N<R(...)` is a child of R, and `*S(...)` is a sharing provider. The fields of an
inventory follow its total: `VCPU 8 reserved 2 ratio 1.5 min 2 max 4 step 2 used 1`. `used 1+2`
means two consumers.

A request is a query string with short names. `{A}` stands for the uuid of the aggregate A, and
`<N>` for the uuid of the provider N, even if the world has neither. `VCPU:1` alone means
`resources=VCPU:1`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import quote
from uuid import UUID, uuid5

SHARING = "MISC_SHARES_VIA_AGGREGATE"
CUSTOM_CLASSES = ("CUSTOM_GOLD",)
CUSTOM_TRAITS = ("CUSTOM_T1", "CUSTOM_T2", "CUSTOM_T3")

_LONG_NAMES = {
    "MEM": "MEMORY_MB",
    "DISK": "DISK_GB",
    **{name.removeprefix("CUSTOM_"): name for name in CUSTOM_CLASSES + CUSTOM_TRAITS},
}
_SHORT_NAMES = {long: short for short, long in _LONG_NAMES.items()}
_INVENTORY_FIELDS = {
    "reserved": "reserved",
    "ratio": "allocation_ratio",
    "min": "min_unit",
    "max": "max_unit",
    "step": "step_size",
}
_UUIDS = UUID("c0ffee00-0000-4000-8000-000000000000")
_PROVIDER = re.compile(r"(\*?)(\w+)(?:<(\w+))?\(([^()]*)\)")
_GROUP_PARAMETER = re.compile(r"(resources|required|member_of|in_tree|in_subtree|or_resources)(.*)")


def long_name(name: str) -> str:
    """The name in the API for a name in the notation.

    >>> long_name("MEM"), long_name("T1"), long_name("VCPU")
    ('MEMORY_MB', 'CUSTOM_T1', 'VCPU')
    """
    return _LONG_NAMES.get(name, name)


def short_name(name: str) -> str:
    """The name in the notation for a name in the API."""
    return _SHORT_NAMES.get(name, name)


def provider_uuid(name: str) -> str:
    """The uuid of the provider of this name, in every world."""
    return str(uuid5(_UUIDS, f"provider {name}"))


def aggregate_uuid(name: str) -> str:
    """The uuid of the aggregate of this name, in every world."""
    return str(uuid5(_UUIDS, f"aggregate {name}"))


@dataclass(frozen=True)
class InventoryNote:
    """An inventory as the API takes it, and the amounts that consumers use."""

    fields: Mapping[str, float]
    used: tuple[int, ...] = ()


@dataclass(frozen=True)
class ProviderNote:
    """A provider of a world; its classes and traits have their long names."""

    name: str
    parent: str | None = None
    inventories: Mapping[str, InventoryNote] = field(default_factory=dict)
    aggregates: tuple[str, ...] = ()
    traits: tuple[str, ...] = ()


def parse_world(text: str) -> tuple[ProviderNote, ...]:
    """The providers of a world, in the order of the text.

    >>> [provider.name for provider in parse_world("R(VCPU 8, agg A, T1), N<R(MEM 4)")]
    ['R', 'N']
    """
    left_over = _PROVIDER.sub("", text).replace(",", "").strip()
    if left_over:
        raise ValueError(f"not a provider: {left_over!r} in {text!r}")
    return tuple(_provider(*match.groups()) for match in _PROVIDER.finditer(text))


def _provider(star: str, name: str, parent: str | None, inside: str) -> ProviderNote:
    inventories: dict[str, InventoryNote] = {}
    aggregates: list[str] = []
    traits = [SHARING] if star else []
    for item in filter(None, map(str.strip, inside.split(","))):
        word, *rest = item.split()
        if word == "agg":
            aggregates += rest
        elif rest:
            inventories[long_name(word)] = _inventory(rest)
        else:
            traits.append(long_name(word))
    return ProviderNote(name, parent, inventories, tuple(aggregates), tuple(traits))


def _inventory(words: list[str]) -> InventoryNote:
    total, *rest = words
    fields: dict[str, float] = {"total": int(total)}
    used: tuple[int, ...] = ()
    for word, value in zip(rest[::2], rest[1::2], strict=True):
        if word == "used":
            used = tuple(map(int, value.split("+")))
        else:
            fields[_INVENTORY_FIELDS[word]] = float(value) if word == "ratio" else int(value)
    return InventoryNote(fields, used)


def write_query(text: str) -> str:
    """The query string that is sent for a request.

    >>> write_query("VCPU:1,MEM:2&required=!T1")
    'resources=VCPU%3A1%2CMEMORY_MB%3A2&required=%21CUSTOM_T1'
    """
    return "&".join(
        f"{quote(name)}={quote(_write_value(name, value), safe='')}"
        for name, value in _parameters(text)
    )


def _parameters(text: str) -> list[tuple[str, str]]:
    """Parameters and values, with short names."""
    if not text:
        return []
    if "=" not in text.partition("&")[0]:
        text = f"resources={text}"
    return [(name, value) for name, _, value in (piece.partition("=") for piece in text.split("&"))]


def _write_value(name: str, value: str) -> str:
    if name.startswith(("resources", "or_resources", "required", "root_required")):
        return re.sub(r"\w+", lambda match: long_name(match[0]), value)
    value = re.sub(r"\{(\w+)\}", _uuid_writer(aggregate_uuid), value)
    return re.sub(r"<(\w+)>", _uuid_writer(provider_uuid), value)


def _uuid_writer(uuid_of: Callable[[str], str]) -> Callable[[re.Match[str]], str]:
    return lambda match: uuid_of(match[1])


def requested_amounts(text: str) -> dict[str, Counter[str]]:
    """The amounts of each group of a well-formed request, by suffix, with short names.

    >>> requested_amounts("VCPU:1&resources_X=DISK:2&required_Y=T1")
    {'': Counter({'VCPU': 1}), '_X': Counter({'DISK': 2}), '_Y': Counter()}
    """
    amounts: dict[str, Counter[str]] = {}
    for name, value in _parameters(text):
        match = _GROUP_PARAMETER.fullmatch(name)
        if match is None:
            continue
        kind, suffix = match.groups()
        amounts.setdefault(suffix, Counter())
        if kind == "resources":
            pairs = (piece.split(":") for piece in value.split(","))
            amounts[suffix] = Counter({wanted: int(amount) for wanted, amount in pairs})
    return amounts
