"""What a query asks at each stage of its search, in a few words. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from roost.cli.request.query_text import QueryPairs

WHOLE_REQUEST = None
"""Stands for the stages of all groups together."""


def asked_at(pairs: QueryPairs, group: str | None, stage: str) -> str | None:
    """What the query asks of this group at this stage; `None` if it asks nothing there.

    >>> asked_at((("resources", "VCPU:4,MEMORY_MB:1024"),), "", "room")
    'VCPU=4, MEMORY_MB=1024 free'
    >>> asked_at((("resources", "VCPU:4"),), "", "traits") is None
    True
    """
    if group is WHOLE_REQUEST:
        return _of_request(pairs, stage)
    amounts = [part.replace(":", "=") for part in _parts(pairs, f"resources{group}")]
    if stage in ("class", "unit", "room"):
        if not amounts:
            return None
        names = ", ".join(part.partition("=")[0] for part in amounts)
        return {
            "class": f"inventory of {names}",
            "unit": f"units that allow {', '.join(amounts)}",
            "room": f"{', '.join(amounts)} free",
        }[stage]
    keys = {"traits": "required", "aggregates": "member_of", "in_tree": "in_tree"}
    if stage not in keys:
        return stage
    values = [value for key, value in pairs if key == f"{keys[stage]}{group}"]
    if stage == "traits" and not group:
        # The providers of this group have its required traits together.
        values = [part for part in _parts(pairs, "required") if part.startswith("!")]
    return f"{stage.rstrip('s')} {' and '.join(values)}" if values else None


def _of_request(pairs: QueryPairs, stage: str) -> str | None:
    given = dict(pairs)
    if stage == "root":
        root = [given[key] for key in ("root_required", "in_tree") if key in given]
        return f"root {' in '.join(root)}" if root else None
    if stage == "groups":
        return "each group by itself"
    return "; ".join(["all groups at once", *_between_groups(pairs)])


def _between_groups(pairs: QueryPairs) -> Iterator[str]:
    traits = [trait for key, value in pairs if key == "required" for trait in _required(value)]
    if traits:
        yield f"traits {', '.join(traits)}"
    for key, value in pairs:
        if key == "same_subtree":
            yield f"same subtree {', '.join(map(group_name, value.split(',')))}"
        elif (key, value) == ("group_policy", "isolate"):
            yield "a provider for each group"


def _required(value: str) -> list[str]:
    """The required traits of a value; alternatives stay together."""
    if value.startswith("in:"):
        return [value]
    return [part for part in value.split(",") if not part.startswith("!")]


def group_name(suffix: str) -> str:
    """A group as people type it.

    >>> group_name("_net"), group_name("")
    ('net', 'unsuffixed')
    """
    return suffix.removeprefix("_") or "unsuffixed"


def _parts(pairs: QueryPairs, wanted: str) -> list[str]:
    return [part for key, value in pairs if key == wanted for part in value.split(",")]
