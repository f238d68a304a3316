"""Requests as people type them, and their query strings. Pure.

From words such as `VCPU=4 --require A --group net SRIOV_NET_VF=1`, or from a line of a log.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote

from roost.cli.shared.exit_status import WrongUsage
from roost.client.ledger.query import QueryPairs, group_suffix
from roost.model.identifiers import is_uuid
from roost.model.text import nearest, own_lines

# A log line may have a method before the path, a version and a status behind it, and quotes.
_IN_A_LINE = re.compile(r"\?([^\s\"'<>]+)")
_EDGES = " \t\r\n\"'`<>"


class UnreadableRequest(WrongUsage):
    """A request that the command cannot turn into a query; the text says why, and what to type."""


def pairs_of(text: str) -> QueryPairs:
    """The pairs of a query string, or of a log line that has one.

    >>> pairs_of('"GET /placement/allocation_candidates?limit=5&resources=VCPU%3A4 HTTP/1.1" 200')
    (('limit', '5'), ('resources', 'VCPU:4'))
    """
    found = _IN_A_LINE.search(text)
    query = found[1] if found else text.strip(_EDGES)
    if "=" not in query:
        # Some logs encode the whole query once more.
        query = unquote(query).partition("?")[2] or unquote(query)
    pairs = tuple(parse_qsl(query, keep_blank_values=True))
    if not any("=" in part for part in query.split("&")) or not pairs:
        raise UnreadableRequest(
            f"{text[:80]!r} has no query string. Give the part after the `?` of a request, such as "
            "--from-query 'resources=VCPU:4,MEMORY_MB:8192'"
        )
    return pairs


_AMOUNT = re.compile(r"(?P<name>[^=:]+)[=:](?P<amount>[0-9]+)\Z")
# The largest amount that a server takes.
_AMOUNT_MAX = 2**31 - 1
_NAME = re.compile(r"[A-Z0-9_]+\Z")

_GROUP_NAME = re.compile(r"[a-zA-Z0-9_-]{1,63}\Z")
POLICIES = ("none", "isolate")

# Names of resource classes are upper case, so no word begins like a parameter.
_QUERY = re.compile(
    r"(?:\A|[?&])(?:(?:or_)?resources|(?:root_)?required|member_of|in_tree|in_subtree|group_policy"
    r"|same_subtree|isolate|limit)[A-Za-z0-9_-]*="
)


@dataclass(slots=True)
class TypedGroup:
    """A request group as far as the words have described it."""

    suffix: str
    resources: dict[str, int] = field(default_factory=dict)
    # Traits that must or, after a `!`, must not be there.
    traits: list[str] = field(default_factory=list)
    # Values `in:A,B`: one of these traits must be there.
    any_traits: list[str] = field(default_factory=list)
    aggregates: list[str] = field(default_factory=list)
    # Resources to take instead of those before them, in order of preference.
    alternatives: list[str] = field(default_factory=list)
    # Uuids or names of providers, by `--in-tree` and `--in-subtree`.
    places: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the group for a sentence."""
        return self.suffix.removeprefix("_") or "before the first --group"

    def is_empty(self) -> bool:
        """Whether no word has described the group."""
        return not any(self.pairs())

    def pairs(self) -> Iterator[tuple[str, str]]:
        """The parameters of the group."""
        if self.resources:
            amounts = (f"{name}:{amount}" for name, amount in self.resources.items())
            yield f"resources{self.suffix}", ",".join(amounts)
        for alternative in self.alternatives:
            yield f"or_resources{self.suffix}", alternative
        if self.traits:
            yield f"required{self.suffix}", ",".join(self.traits)
        for choice in self.any_traits:
            yield f"required{self.suffix}", choice
        for aggregates in self.aggregates:
            yield f"member_of{self.suffix}", aggregates
        for option in sorted(self.places, reverse=True):
            yield f"{option[2:].replace('-', '_')}{self.suffix}", self.places[option]

    def add_resources(self, word: str) -> None:
        """Add what a bare word asks for: `VCPU=4`, `VCPU:4` or several with commas."""
        for part in word.split(","):
            name, amount = _amount(part)
            if name in self.resources:
                raise UnreadableRequest(
                    f"The group {self.name} asks for {name} twice. Leave one out, or begin another "
                    f"group: --group NAME {name}={amount}"
                )
            self.resources[name] = amount

    def add_alternative(self, value: str) -> None:
        """Add what `--or` would take instead: `VCPU=2,MEMORY_MB=4096`."""
        parts = map(_amount, value.split(","))
        self.alternatives.append(",".join(f"{name}:{amount}" for name, amount in parts))

    def set_place(self, option: str, value: str) -> None:
        """Set the provider that the group is in the tree of, or below."""
        if not value.strip():
            raise UnreadableRequest(
                f"{option} of the group {self.name} is empty. Give the name or uuid of a provider, "
                "or leave the option out"
            )
        if option in self.places:
            raise UnreadableRequest(
                f"The group {self.name} has {option} twice: one is all it can be in. "
                "Leave one out, or begin another group with --group NAME"
            )
        self.places[option] = value

    def add_traits(self, value: str) -> None:
        """Add what `--require` asks for: `A`, `!A`, `A,B` or `in:A,B`."""
        if value.startswith("in:"):
            names = ",".join(_names(value.removeprefix("in:"), "--require in:A,B"))
            self.any_traits.append(f"in:{names}")
        else:
            self.traits += trait_list(value)

    def forbid_traits(self, value: str) -> None:
        """Add what `--forbid` names: `A` or `A,B`."""
        self.traits += [f"!{name}" for name in _names(value.replace("!", ""), "--forbid A,B")]

    def add_aggregates(self, value: str) -> None:
        """Add what `--member-of` asks for: a uuid, `in:UUID,UUID`, or `!` before either."""
        listing = value.removeprefix("!")
        bare = listing.removeprefix("in:").split(",")
        for uuid in bare:
            if not is_uuid(uuid):
                raise UnreadableRequest(
                    f"--member-of {value}: {uuid!r} is no uuid, and aggregates have no names here. "
                    "`roost provider show HOST` prints the aggregates of a provider."
                )
        several = "in:" if len(bare) > 1 or listing.startswith("in:") else ""
        mark = "!" if value.startswith("!") else ""
        self.aggregates.append(f"{mark}{several}{','.join(bare)}")


def trait_list(value: str) -> list[str]:
    """Traits that must be there or, after a `!`, must not.

    >>> trait_list("hw_cpu_x86_avx2,!CUSTOM_OLD")
    ['HW_CPU_X86_AVX2', '!CUSTOM_OLD']
    """
    return [
        f"!{name}" if part.startswith("!") else name
        for part in value.split(",")
        for name in _names(part.removeprefix("!"), "--require A")
    ]


def _amount(word: str) -> tuple[str, int]:
    """A resource class and an amount.

    >>> _amount("VCPU=4"), _amount("vcpu:4")
    (('VCPU', 4), ('VCPU', 4))
    """
    found = _AMOUNT.match(word.strip())
    name = found["name"].upper() if found else ""
    if found is None or not _NAME.match(name):
        raise UnreadableRequest(
            f"{word!r} asks for nothing. Write a resource class and a whole number, such as VCPU=4"
        )
    # Ten digits are as many as the largest amount has.
    amount = int(found["amount"].lstrip("0")[:11] or 0)
    if not 1 <= amount <= _AMOUNT_MAX:
        raise UnreadableRequest(
            f"{word!r}: an amount is a whole number from 1 to {_AMOUNT_MAX}, as in {name}=4"
        )
    return name, amount


def read_amounts(words: Iterable[str]) -> dict[str, int]:
    """The amounts of several words by resource class.

    >>> read_amounts(["VCPU=4,MEMORY_MB=512", "DISK_GB=10"])
    {'VCPU': 4, 'MEMORY_MB': 512, 'DISK_GB': 10}
    """
    amounts: dict[str, int] = {}
    for name, amount in (_amount(part) for word in words for part in word.split(",")):
        if name in amounts:
            raise UnreadableRequest(f"{name} is there twice. Leave one out, or add them up")
        amounts[name] = amount
    return amounts


def _names(value: str, form: str) -> list[str]:
    names = [name.strip().upper() for name in value.split(",")]
    for name in names:
        if not _NAME.match(name):
            raise UnreadableRequest(
                f"{value!r} names no trait at {name!r}. Write names of traits, as in {form}"
            )
    return names


# What the options of a group do with their value.
_OF_A_GROUP: Mapping[str, Callable[[TypedGroup, str], None]] = {
    "": TypedGroup.add_resources,
    "--require": TypedGroup.add_traits,
    "--forbid": TypedGroup.forbid_traits,
    "--member-of": TypedGroup.add_aggregates,
    "--in-tree": lambda group, value: group.set_place("--in-tree", value),
    "--in-subtree": lambda group, value: group.set_place("--in-subtree", value),
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
    """The suffix of a group that an operator names."""
    if not _GROUP_NAME.match(name):
        raise UnreadableRequest(
            f"{name!r} is no name of a group. Use letters, digits, `_` and `-`: --group net"
        )
    return group_suffix(name)


def group_name(suffix: str, alternative: int = 0) -> str:
    """A group as people type it, with the number of its alternative.

    >>> group_name("_net"), group_name(""), group_name("_net", 1)
    ('net', 'unsuffixed', 'net, alternative 1')
    """
    name = suffix.removeprefix("_") or "unsuffixed"
    return f"{name}, alternative {alternative}" if alternative else name


def _split(value: str) -> list[str]:
    return [part.strip() for part in value.split(",")]


class TakesValue(Enum):
    """Whether an option takes the next argument as its value."""

    NEVER = "never"
    ALWAYS = "always"
    # Unless the next argument is an option.
    UNLESS_OPTION = "unless option"


def ordered_words(
    arguments: Sequence[str], options: Mapping[str, TakesValue]
) -> Iterator[RequestWord]:
    """Each option with its value, and each bare word, of a command line that click has accepted.

    >>> options = {"--group": TakesValue.ALWAYS, "--isolate": TakesValue.NEVER}
    >>> found = ordered_words(["A=1", "--group", "x", "--isolate", "B=2"], options)
    >>> [tuple(word) for word in found]
    [('', 'A=1'), ('--group', 'x'), ('--isolate', ''), ('', 'B=2')]
    """
    position = 0
    while position < len(arguments):
        argument = arguments[position]
        position += 1
        if argument == "--":
            yield from (RequestWord("", word) for word in arguments[position:])
            return
        if not _is_option(argument):
            yield RequestWord("", argument)
            continue
        option, equals, value = argument.partition("=")
        following = arguments[position : position + 1]
        if not equals and following and _takes(options.get(option), following[0]):
            value = following[0]
            position += 1
        yield RequestWord(option, value)


def _takes(takes: TakesValue | None, following: str) -> bool:
    if takes is TakesValue.UNLESS_OPTION:
        return not _is_option(following)
    return takes is TakesValue.ALWAYS


def _is_option(argument: str) -> bool:
    """Whether an argument is an option; a dash alone is a word."""
    return len(argument) > 1 and argument.startswith("-")


REQUEST_OPTIONS = {"--isolate": TakesValue.NEVER} | dict.fromkeys(
    (
        *_OF_A_GROUP.keys() - {""},
        *("--group", "--same-subtree", "--apart", "--group-policy", "--root-require", "--limit"),
    ),
    TakesValue.ALWAYS,
)
"""The options that words of a request may have."""


def read_request(text: str) -> TypedRequest:
    """The request in a text.

    >>> read_request("VCPU=4 --require CUSTOM_A") == read_request(
    ...     "resources=VCPU:4&required=CUSTOM_A"
    ... )
    True
    """
    if _QUERY.search(text.strip()):
        return TypedRequest(pairs_of(text))
    try:
        parts = shlex.split(text)
    except ValueError as error:
        raise UnreadableRequest(f"{text!r} cannot be split into words: {error}") from None
    words = list(ordered_words(parts, REQUEST_OPTIONS))
    for option, _ in words:
        if option and option not in REQUEST_OPTIONS:
            raise UnreadableRequest(
                f"{text!r} has the option {option}, which is none of a request. Leave it out, or "
                "give it outside the quotes."
            )
    return read_words(words)
