"""What a query asks at each stage of its search, in a few words. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from roost.cli.request.query_text import QueryPairs

WHOLE_REQUEST = None
"""Stands for the stages of all groups together."""


def asked_at(pairs: QueryPairs, group: str | None, stage: str, alternative: int = 0) -> str | None:
    """What the query asks of this group at this stage; `None` if it asks nothing there.

    An alternative is one of `or_resources`, from 1 on; 0 is `resources`.

    >>> asked_at((("resources", "VCPU:4,MEMORY_MB:1024"),), "", "room")
    'VCPU=4, MEMORY_MB=1024 free'
    >>> asked_at((("resources", "VCPU:4"),), "", "traits") is None
    True
    """
    if group is WHOLE_REQUEST:
        return _of_request(pairs, stage)
    amounts = [part.replace(":", "=") for part in _taken(pairs, group, alternative)]
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
    if stage == "in_tree":
        values += [f"below {value}" for key, value in pairs if key == f"in_subtree{group}"]
    if stage == "traits" and not group:
        # The providers of this group have its required traits together.
        values = [part for part in _parts(pairs, "required") if part.startswith("!")]
    return f"{stage.rstrip('s')} {' and '.join(values)}" if values else None


def _of_request(pairs: QueryPairs, stage: str) -> str | None:
    if stage == "root":
        traits = [value for key, value in pairs if key == "root_required"]
        root = [" and ".join(traits)] if traits else []
        root += [value for key, value in pairs if key in ("in_tree", "in_subtree")]
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
        elif key == "isolate":
            yield f"a provider for each of {', '.join(map(group_name, value.split(',')))}"


def _required(value: str) -> list[str]:
    """The required traits of a value; alternatives stay together."""
    if value.startswith("in:"):
        return [value]
    return [part for part in value.split(",") if not part.startswith("!")]


def group_name(suffix: str, alternative: int = 0) -> str:
    """A group as people type it, with the number of its alternative.

    >>> group_name("_net"), group_name(""), group_name("_net", 1)
    ('net', 'unsuffixed', 'net, alternative 1')
    """
    name = suffix.removeprefix("_") or "unsuffixed"
    return f"{name}, alternative {alternative}" if alternative else name


def _taken(pairs: QueryPairs, group: str, alternative: int) -> list[str]:
    """The amounts that a group takes, by its alternative."""
    if not alternative:
        return _parts(pairs, f"resources{group}")
    values = [value for key, value in pairs if key == f"or_resources{group}"]
    return values[alternative - 1].split(",") if alternative <= len(values) else []


def _parts(pairs: QueryPairs, wanted: str) -> list[str]:
    return [part for key, value in pairs if key == wanted for part in value.split(",")]
