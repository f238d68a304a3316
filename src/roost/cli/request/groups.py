"""Request groups as words describe them, one value of each option after another. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from roost.cli.request.query_text import UnreadableRequest
from roost.model.identifiers import is_uuid

_AMOUNT = re.compile(r"(?P<name>[^=:]+)[=:](?P<amount>[0-9]+)\Z")
# The largest amount that a server takes.
_AMOUNT_MAX = 2**31 - 1
_NAME = re.compile(r"[A-Z0-9_]+\Z")


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
    # Uuids or names.
    in_tree: str | None = None
    in_subtree: str | None = None

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
        if self.in_tree is not None:
            yield f"in_tree{self.suffix}", self.in_tree
        if self.in_subtree is not None:
            yield f"in_subtree{self.suffix}", self.in_subtree

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

    def set_tree(self, value: str) -> None:
        """Set the provider whose tree the group is in."""
        self._demand_one("--in-tree", value, self.in_tree)
        self.in_tree = value

    def set_subtree(self, value: str) -> None:
        """Set the provider below which the group is."""
        self._demand_one("--in-subtree", value, self.in_subtree)
        self.in_subtree = value

    def _demand_one(self, option: str, value: str, earlier: str | None) -> None:
        if not value.strip():
            raise UnreadableRequest(
                f"{option} of the group {self.name} is empty. Give the name or uuid of a provider, "
                "or leave the option out"
            )
        if earlier is not None:
            raise UnreadableRequest(
                f"The group {self.name} has {option} twice: one is all it can be in. "
                "Leave one out, or begin another group with --group NAME"
            )

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


def _names(value: str, form: str) -> list[str]:
    names = [name.strip().upper() for name in value.split(",")]
    for name in names:
        if not _NAME.match(name):
            raise UnreadableRequest(
                f"{value!r} names no trait at {name!r}. Write names of traits, as in {form}"
            )
    return names
