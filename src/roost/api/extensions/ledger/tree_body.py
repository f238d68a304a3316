"""The body of `PUT /roost/trees/{provider}`: the structure of a tree file, for one tree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from roost.api.handlers.inventories import FIELDS
from roost.api.http.errors import HttpError, bad_value
from roost.api.http.json_schemas import (
    CLASS_NAME,
    EXAMPLE_AGGREGATE,
    UUID,
    Document,
    described,
    integer,
    list_of,
    mapping,
    record,
    text,
)
from roost.api.http.microversions import MIN_VERSION
from roost.api.http.validation import Schema, parse_json
from roost.api.routing import JsonBody
from roost.model.inventory import INTEGER_MAX, RATIO_MAX
from roost.model.trees.declaration import Declaration, DeclaredProvider
from roost.model.trees.owner_names import OWNER_LENGTH_MAX

# Each bound lets all that an owner owns of a provider fit into one row.
_MEMBERS_MAX = 1000
_PROVIDERS_MAX = 10_000
_LEVELS_MAX = 50

_NAME = text(minimum=1, maximum=200)
_TRAIT = text(CLASS_NAME, minimum=1, maximum=255)
_IGNORED = "Ignored, so that a client may send what it has read."
# A number alone means `total`. Bounds of numbers do not apply to objects, and vice versa.
_INVENTORY: Document = (
    record(
        {"total": FIELDS["total"]},
        {name: field for name, field in FIELDS.items() if name != "total"}
        | {"allocation_ratio": {"type": "number", "minimum": 0, "maximum": RATIO_MAX}},
    )
    | integer(1, INTEGER_MAX)
    | {"type": ["integer", "object"]}
)
_PROVIDER = record(
    {"name": _NAME},
    {
        "uuid": described(UUID, "The uuid of a new provider, or the one that it has."),
        "parent": described(_NAME, "The name of a provider of this declaration."),
        "children": described(list_of({"type": "object"}), "Providers below this one."),
        "inventories": described(
            mapping(CLASS_NAME, _INVENTORY) | {"maxProperties": _MEMBERS_MAX},
            "By resource class. An existing inventory keeps a field that is left out.",
        ),
        "traits": list_of(_TRAIT) | {"maxItems": _MEMBERS_MAX},
        "aggregates": list_of(UUID) | {"maxItems": _MEMBERS_MAX},
        "generation": described(
            integer(0), "409 if the provider has another one. Leave it out to declare anyway."
        ),
        "usages": {"description": _IGNORED},
        "owners": {"description": _IGNORED},
    },
)
TREE_BODY = JsonBody(
    "TreeDeclaration",
    "All providers that the owner declares in the tree; none withdraws everything.",
    (
        "1.0",
        record(
            {"providers": list_of(_PROVIDER)},
            {
                "owner": described(
                    text(minimum=1, maximum=OWNER_LENGTH_MAX), "Instead of the parameter."
                ),
                "sharing_providers": {"description": _IGNORED},
            },
        ),
    ),
    example={
        "owner": "network-team",
        "providers": [
            {
                "name": "compute-1",
                "traits": ["CUSTOM_RACK_7"],
                "aggregates": [EXAMPLE_AGGREGATE],
                "children": [
                    {
                        "name": "compute-1_numa0",
                        "inventories": {"VCPU": 16, "MEMORY_MB": {"total": 65536, "reserved": 512}},
                    }
                ],
            }
        ],
    },
)
_CHILDREN = Schema(list_of(_PROVIDER))


class TreeBody(NamedTuple):
    """What a body declares: its owner, if it names one, and the generations by declared name."""

    owner: str | None
    declaration: Declaration
    generations: Mapping[str, int]


class _Placed(NamedTuple):
    """A provider of the body, its place there, and the name of the parent that it is inside of."""

    place: str
    body: Mapping[str, Any]
    parent: str | None


def parse_tree_body(body: bytes) -> TreeBody:
    """The declaration in a body; 400 that names the bad part by its place."""
    value = _checked(body)
    found: dict[str, _Placed] = {}
    for placed in _flat(value["providers"]):
        name = placed.body["name"]
        if name in found:
            raise bad_value(
                f"{placed.place}: {name!r} is declared before, at {found[name].place}. Declare it "
                "once."
            )
        found[name] = placed
    parents = {name: _parent(placed, found) for name, placed in found.items()}
    ordered = _parents_first(parents, found)
    tops = [name for name in ordered if parents[name] is None]
    if len(tops) > 1:
        raise bad_value(
            f"{found[tops[1]].place}: {tops[1]!r} has no parent, and so has {tops[0]!r}. Declare "
            "one tree in a request."
        )
    declared = tuple(_declared(found[name].body, parents[name]) for name in ordered)
    generations = {
        name: int(placed.body["generation"])
        for name, placed in found.items()
        if "generation" in placed.body
    }
    return TreeBody(value.get("owner"), Declaration(declared), generations)


def _checked(body: bytes) -> Mapping[str, Any]:
    try:
        value = parse_json(body)
        problem = TREE_BODY.schemas.at(MIN_VERSION).placed_problem(value)
    except RecursionError:
        problem = "it is nested too deeply"
    if problem is not None:
        raise _invalid(problem)
    found: Mapping[str, Any] = value
    return found


def _invalid(problem: str) -> HttpError:
    return bad_value(f"JSON does not validate: {problem}")


def _flat(providers: list[Mapping[str, Any]]) -> Iterator[_Placed]:
    """All providers of a body, those inside of others included, in their order."""
    waiting = [
        _Placed(f"providers[{position}]", each, None) for position, each in enumerate(providers)
    ][::-1]
    count = len(waiting)
    while waiting:
        placed = waiting.pop()
        yield placed
        children = placed.body.get("children", [])
        problem = _CHILDREN.placed_problem(children)
        if problem is not None:
            raise _invalid(f"{placed.place}.children{problem}")
        count += len(children)
        waiting += [
            _Placed(f"{placed.place}.children[{position}]", each, placed.body["name"])
            for position, each in enumerate(children)
        ][::-1]
        if count > _PROVIDERS_MAX:
            raise bad_value(
                f"The declaration has more than {_PROVIDERS_MAX} providers. Declare fewer."
            )


def _parent(placed: _Placed, found: Mapping[str, _Placed]) -> str | None:
    """The name of the declared parent; `None` for a root."""
    name, named = placed.body["name"], placed.body.get("parent")
    if placed.parent is not None:
        if named not in (None, placed.parent):
            raise bad_value(
                f"{placed.place}: {name!r} is among the children of {placed.parent!r}, and names "
                f"the parent {named!r}. Leave `parent` out."
            )
        return placed.parent
    if named is not None and named not in found:
        raise bad_value(
            f"{placed.place}: {name!r} has the parent {named!r}, which is not declared. Declare "
            "it, too; its name is enough."
        )
    return named


def _parents_first(parents: Mapping[str, str | None], found: Mapping[str, _Placed]) -> list[str]:
    """The names in an order in which parents come first, and else in that of the body."""
    children: dict[str | None, list[str]] = {}
    for name, parent in parents.items():
        children.setdefault(parent, []).append(name)
    ordered: list[str] = []
    level, depth = children.get(None, []), 0
    while level:
        depth += 1
        if depth > _LEVELS_MAX:
            raise bad_value(
                f"{found[level[0]].place}: {level[0]!r} is below {_LEVELS_MAX} levels of "
                "providers. Declare a tree of fewer levels."
            )
        ordered += level
        level = [child for name in level for child in children.get(name, ())]
    for name in parents.keys() - set(ordered):
        raise bad_value(
            f"{found[name].place}: {name!r} is below itself. Correct its parent, or that of a "
            "provider above it."
        )
    return ordered


def _declared(body: Mapping[str, Any], parent: str | None) -> DeclaredProvider:
    return DeclaredProvider(
        body["name"],
        parent,
        body.get("uuid"),
        {name: _fields(fields) for name, fields in body.get("inventories", {}).items()},
        frozenset(body.get("traits", ())),
        frozenset(body.get("aggregates", ())),
    )


def _fields(inventory: Any) -> dict[str, int | float]:
    """The declared fields. To JSON schema 10.0 is a whole number, so it may be a float here."""
    if not isinstance(inventory, Mapping):
        return {"total": int(inventory)}
    return {
        name: float(value) if name == "allocation_ratio" else int(value)
        for name, value in inventory.items()
    }
