"""Queries: what a consumer needs, and the query string that asks for it. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias
from urllib.parse import parse_qsl, urlencode

QueryPairs: TypeAlias = tuple[tuple[str, str], ...]

# Servers take these characters in a query string as they are, and people can read them.
_READABLE = ":,!"


def query_string(pairs: Iterable[tuple[str, str]]) -> str:
    """The query string of these pairs, without the characters that confuse readers.

    >>> query_string([("resources", "VCPU:4,MEMORY_MB:8192"), ("required", "!CUSTOM_A")])
    'resources=VCPU:4,MEMORY_MB:8192&required=!CUSTOM_A'
    """
    return urlencode(list(pairs), safe=_READABLE)


def plain_pairs(pairs: QueryPairs) -> QueryPairs:
    """The pairs of a query without what only `GET /roost/candidates` answers.

    >>> plain_pairs((("resources_a", "VCPU:1"), ("in_subtree_a", "x"), ("isolate", "_a")))
    (('resources_a', 'VCPU:1'), ('group_policy', 'isolate'))
    """
    kept = [
        (key, value)
        for key, value in pairs
        if key != "isolate"
        and not key.startswith(("in_subtree", "or_resources"))
        and not (key == "root_required" and value.startswith("in:"))
    ]
    isolated = [set(value.split(",")) for key, value in pairs if key == "isolate"]
    if isolated:
        kept = _with_policy(kept, isolated)
    roots = [pair for pair in kept if pair[0] == "root_required"]
    return tuple(pair for pair in kept if pair not in roots[1:])


def _with_policy(
    pairs: Iterable[tuple[str, str]], isolated: Iterable[set[str]]
) -> list[tuple[str, str]]:
    """The pairs with the group policy that comes nearest to these sets of isolated groups."""
    kept = list(pairs)
    resources = (key.removeprefix("resources") for key, _ in kept if key.startswith("resources"))
    suffixes = {suffix for suffix in resources if suffix}
    policy = "isolate" if any(suffixes <= groups for groups in isolated) else "none"
    if policy == "isolate" or "group_policy" not in dict(kept):
        kept = [pair for pair in kept if pair[0] != "group_policy"]
        kept.append(("group_policy", policy))
    return kept


@dataclass(frozen=True, slots=True)
class Needs:
    """What a consumer needs: amounts of resource classes, and conditions on their providers.

    Further `groups`, by name, are each satisfied by one provider. Several groups share providers
    unless they are to `isolate`. Groups in a set of `same_subtree` are below one of them.

    >>> Needs({"VCPU": 2}, required=["CUSTOM_GOLD"], forbidden=["CUSTOM_OLD"]).query
    'resources=VCPU:2&required=CUSTOM_GOLD,!CUSTOM_OLD'
    >>> net = Needs({"SRIOV_NET_VF": 1})
    >>> Needs({"VCPU": 2}, groups={"net0": net, "net1": net}, isolate=True).query
    'resources=VCPU:2&resources_net0=SRIOV_NET_VF:1&resources_net1=SRIOV_NET_VF:1&group_policy=isolate'
    """

    resources: Mapping[str, int] = field(default_factory=dict)
    required: Collection[str] = ()
    """Traits that must be there."""
    any_of: Collection[Collection[str]] = ()
    """Sets of traits; of each set, one must be there."""
    forbidden: Collection[str] = ()
    """Traits that must not be there."""
    member_of: Collection[str] = ()
    """Aggregates by uuid; a provider is in one of them."""
    in_tree: str | None = None
    """A provider by name or uuid, whose tree gives it all."""
    groups: Mapping[str, Needs] = field(default_factory=dict)
    isolate: bool = False
    same_subtree: Collection[Collection[str]] = ()
    root_required: Collection[str] = ()
    """Traits that the root of the tree must have."""

    def __post_init__(self) -> None:
        for name, group in self.groups.items():
            if group.groups or group.isolate or group.same_subtree or group.root_required:
                raise ValueError(
                    f"the group {name} has groups, isolate, same_subtree or root_required: say "
                    "these in the request that has the group"
                )
        for names in (self.required, self.forbidden, self.member_of, self.root_required):
            if isinstance(names, str):
                raise ValueError(f"{names!r} is one text: write a list of names, as in [{names!r}]")

    @property
    def query(self) -> str:
        """The query string of `GET /allocation_candidates`."""
        return query_string(self.pairs())

    def pairs(self) -> QueryPairs:
        """The parameters: those of each group, then those between groups."""
        return (*self._of_group(""), *self._between_groups())

    def _of_group(self, suffix: str) -> Iterator[tuple[str, str]]:
        if self.resources:
            amounts = (f"{name}:{amount}" for name, amount in self.resources.items())
            yield f"resources{suffix}", ",".join(amounts)
        traits = (*self.required, *(f"!{name}" for name in self.forbidden))
        if traits:
            yield f"required{suffix}", ",".join(traits)
        for choice in self.any_of:
            yield f"required{suffix}", f"in:{','.join(choice)}"
        if self.member_of:
            yield f"member_of{suffix}", f"in:{','.join(self.member_of)}"
        if self.in_tree is not None:
            yield f"in_tree{suffix}", self.in_tree

    def _between_groups(self) -> Iterator[tuple[str, str]]:
        for name, group in self.groups.items():
            yield from group._of_group(group_suffix(name))
        if self.groups:
            yield "group_policy", "isolate" if self.isolate else "none"
        for names in self.same_subtree:
            yield "same_subtree", ",".join(map(group_suffix, names))
        if self.root_required:
            yield "root_required", ",".join(self.root_required)


AnyQuery: TypeAlias = Needs | Mapping[str, int] | str
"""Needs; the amounts alone, by resource class; or a query string of the API."""


def group_suffix(name: str) -> str:
    """The suffix of a group: numbers as Nova writes them, names behind an underscore.

    >>> group_suffix("net"), group_suffix("_net"), group_suffix("1")
    ('_net', '_net', '1')
    """
    return name if name.isdigit() or name.startswith("_") else f"_{name}"


def pairs_in(query: AnyQuery) -> QueryPairs:
    """The parameters of a query.

    >>> pairs_in({"VCPU": 2}), pairs_in("?resources=VCPU%3A2&limit=5")
    ((('resources', 'VCPU:2'),), (('resources', 'VCPU:2'), ('limit', '5')))
    """
    if isinstance(query, str):
        return tuple(parse_qsl(query.removeprefix("?"), keep_blank_values=True))
    return (query if isinstance(query, Needs) else Needs(query)).pairs()
