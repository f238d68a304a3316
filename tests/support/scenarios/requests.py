"""Requests for allocation candidates: the query for the oracle, and the parameters to send."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import urlencode

from support.scenarios.oracle import Group, Query
from support.scenarios.random_clouds import Draw, happens

# The first minor version of each parameter.
LIMIT = 16
REQUIRED = 17
MEMBER_OF = 21
FORBIDDEN = 22
SEVERAL_MEMBER_OF = 24
SUFFIXES = 25
IN_TREE = 31
NOT_MEMBER_OF = 32
ANY_SUFFIX = 33
ROOT_REQUIRED = 35
SAME_SUBTREE = 36
ANY_TRAITS = 39

Parameter: TypeAlias = tuple[str, str]


@dataclass(frozen=True)
class Mishap:
    """The fault of a bad request, and the statuses that answer it."""

    name: str
    # The status that the rules prefer.
    right: int
    # A 200 has no candidates.
    ours: tuple[int, ...]
    theirs: tuple[int, ...]
    # The defect of the reference that explains a different status.
    defect: str = ""


@dataclass(frozen=True)
class Request:
    """A query for the oracle, and the parameters to send."""

    query: Query
    parameters: tuple[Parameter, ...]
    mishap: Mishap | None = None

    @property
    def version(self) -> str:
        return f"1.{self.query.minor}"

    @property
    def path(self) -> str:
        return f"/allocation_candidates?{urlencode(self.parameters, safe='!:,')}"


def group_parameters(draw: Draw, minor: int, group: Group) -> list[tuple[str, str]]:
    """The parameters of a group, in one of several equal forms."""
    pairs: list[tuple[str, str]] = []
    if group.resources:
        amounts = ",".join(f"{name}:{amount}" for name, amount in group.resources.items())
        pairs.append(("resources", amounts))
    plain = [f"!{name}" for name in sorted(group.forbidden)]
    for item in group.required:
        if len(item) > 1 or (minor >= ANY_TRAITS and happens(draw, 10)):
            pairs.append(("required", "in:" + ",".join(sorted(item))))
        else:
            plain += item
    if minor >= ANY_TRAITS and happens(draw, 30):
        pairs += [("required", value) for value in plain]
    elif plain:
        pairs.append(("required", ",".join(plain)))
    for asked in group.member_of:
        keyword = "in:" if len(asked) > 1 or happens(draw, 20) else ""
        pairs.append(("member_of", keyword + ",".join(sorted(asked))))
    if len(group.not_member_of) > 1 and happens(draw, 50):
        pairs += [("member_of", f"!{uuid}") for uuid in sorted(group.not_member_of)]
    elif group.not_member_of:
        pairs.append(("member_of", "!in:" + ",".join(sorted(group.not_member_of))))
    if group.in_tree is not None:
        pairs.append(("in_tree", group.in_tree))
    return [(f"{name}{group.suffix}", value) for name, value in pairs]


def query_parameters(query: Query) -> list[tuple[str, str]]:
    """The parameters that hold for all groups."""
    pairs = [("same_subtree", ",".join(sorted(its))) for its in query.same_subtrees]
    traits = [*sorted(query.root_required), *(f"!{name}" for name in sorted(query.root_forbidden))]
    if traits:
        pairs.append(("root_required", ",".join(traits)))
    if query.policy is not None:
        pairs.append(("group_policy", query.policy))
    if query.limit is not None:
        pairs.append(("limit", str(query.limit)))
    return pairs
