"""From words to a query: `VCPU=4 --require A --group net SRIOV_NET_VF=1`. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from roost.cli.request.groups import TypedGroup
from roost.cli.request.query_text import QueryPairs, UnreadableRequest
from roost.model.text import nearest, own_lines

_GROUP_NAME = re.compile(r"[a-zA-Z0-9_-]{1,63}\Z")
POLICIES = ("none", "isolate")

# What the options of a group do with their value.
_OF_A_GROUP = {
    "": TypedGroup.add_resources,
    "--require": TypedGroup.add_traits,
    "--forbid": TypedGroup.forbid_traits,
    "--member-of": TypedGroup.add_aggregates,
    "--in-tree": TypedGroup.set_tree,
    "--in-subtree": TypedGroup.set_subtree,
    "--or": TypedGroup.add_alternative,
}


class RequestWord(NamedTuple):
    """An option with its value, or a bare word, whose option is empty."""

    option: str
    value: str


class TypedRequest(NamedTuple):
    """A query, and what the reader should know of how the words were read."""

    pairs: QueryPairs
    notes: tuple[str, ...] = ()


def read_words(words: Iterable[RequestWord]) -> TypedRequest:
    """The request that these words describe.

    >>> read_words([RequestWord("", "VCPU=4"), RequestWord("--limit", "3")]).pairs
    (('resources', 'VCPU:4'), ('limit', '3'))
    """
    draft = _Draft()
    for word in words:
        draft.take(word)
    draft.check()
    notes = tuple(draft.name_the_first_group())
    return TypedRequest(tuple(draft.pairs()), notes)


@dataclass(slots=True)
class _Draft:
    """A request as far as its words are read; options of a group go to the last group."""

    groups: list[TypedGroup] = field(default_factory=lambda: [TypedGroup("")])
    same_subtrees: list[tuple[str, ...]] = field(default_factory=list)
    # Groups that share no provider with each other.
    isolated: list[tuple[str, ...]] = field(default_factory=list)
    # The traits of the root, as those of a group.
    root: TypedGroup = field(default_factory=lambda: TypedGroup(""))
    policy: str | None = None
    limit: str | None = None

    def take(self, word: RequestWord) -> None:
        option, value = word
        if option in _OF_A_GROUP:
            _OF_A_GROUP[option](self.groups[-1], value)
        elif option == "--group":
            self._begin_group(value)
        elif option == "--same-subtree":
            self.same_subtrees.append(tuple(map(_suffix, _split(value))))
        elif option == "--apart":
            self.isolated.append(tuple(map(_suffix, _split(value))))
        elif option == "--root-require":
            self.root.add_traits(value)
        elif option == "--limit":
            self.limit = value
        else:
            self._set_policy("isolate" if option == "--isolate" else value)

    def _begin_group(self, name: str) -> None:
        suffix = _suffix(name)
        if suffix in (group.suffix for group in self.groups):
            raise UnreadableRequest(
                f"There are two groups {name}. Give the second one another name: --group {name}2"
            )
        self.groups.append(TypedGroup(suffix))

    def _set_policy(self, policy: str) -> None:
        if self.policy not in (None, policy):
            raise UnreadableRequest(
                "--isolate and --group-policy none contradict each other. Leave one out"
            )
        self.policy = policy

    def check(self) -> None:
        """Refuse what no server could answer."""
        for group in self.groups[1:]:
            if group.is_empty():
                raise UnreadableRequest(
                    f"The group {group.name} asks for nothing. Write what it needs behind its "
                    f"name: --group {group.name} VCPU=1"
                )
        if not any(group.resources for group in self.groups):
            raise UnreadableRequest(
                "The request asks for no resources. Name some, such as VCPU=4 MEMORY_MB=8192"
            )

    def name_the_first_group(self) -> Iterator[str]:
        """Give the words before the first `--group` the only group that is named but not there."""
        known = [group.suffix for group in self.groups[1:]]
        sets = [*self.same_subtrees, *self.isolated]
        named = dict.fromkeys(suffix for groups in sets for suffix in groups)
        unknown = [suffix for suffix in named if suffix not in known]
        if not unknown:
            return
        # A misspelt name means a group that is not named beside it.
        left = set(known).difference(named)
        meant = {suffix: nearest(suffix, left) for suffix in unknown}
        first = self.groups[0]
        if len(unknown) > 1 or first.is_empty() or any(meant.values()):
            raise UnreadableRequest(own_lines(*(_unknown_group(*pair) for pair in meant.items())))
        first.suffix = unknown[0]
        yield f"The words before the first --group are the group {first.name}."

    def pairs(self) -> Iterator[tuple[str, str]]:
        """All parameters: those of each group, then those between groups."""
        for group in self.groups:
            yield from group.pairs()
        if sum(1 for group in self.groups if group.suffix) > 1:
            # A server demands the parameter once there are several such groups.
            yield "group_policy", self.policy or "none"
        elif self.policy is not None:
            yield "group_policy", self.policy
        for subtree in self.same_subtrees:
            yield "same_subtree", ",".join(subtree)
        for groups in self.isolated:
            yield "isolate", ",".join(groups)
        yield from ((f"root_{key}", value) for key, value in self.root.pairs())
        if self.limit is not None:
            yield "limit", self.limit


def _unknown_group(suffix: str, meant: str | None) -> str:
    name = suffix.removeprefix("_")
    if meant is None:
        advice = f"Begin it before its resources: --group {name} VCPU=1"
    else:
        advice = f"Did you mean {meant.removeprefix('_')}?"
    return f"The group {name} is not there, but another option names it. {advice}"


def _suffix(name: str) -> str:
    """The suffix of a group: numbers as Nova writes them, names behind an underscore.

    >>> _suffix("net"), _suffix("_net"), _suffix("1")
    ('_net', '_net', '1')
    """
    if not _GROUP_NAME.match(name):
        raise UnreadableRequest(
            f"{name!r} is no name of a group. Use letters, digits, `_` and `-`: --group net"
        )
    return name if name.isdigit() or name.startswith("_") else f"_{name}"


def _split(value: str) -> list[str]:
    return [part.strip() for part in value.split(",")]
