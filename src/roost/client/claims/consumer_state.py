"""The allocations of a consumer, and the bodies of requests that change them. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from roost.client.errors import AllocationUpdateFailed, AlreadyAllocated

Body = dict[str, Any]
Resources = Mapping[str, int]
ResourcesByProvider = Mapping[str, Resources]
"""Provider UUID -> resource class -> amount."""

OBJECT_VERSION = "1.12"
"""Since then `allocations` is an object by provider; before, it was a list."""
GENERATION_VERSION = "1.28"
"""Since then a request says which generation of the consumer it replaces."""
TYPE_VERSION = "1.38"
"""Since then a body has to name the consumer's type."""

_BEFORE_TYPE_VERSION = "1.37"
_NO_TYPE = "unknown"

_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class ConsumerState:
    """The allocations of one consumer; an unknown consumer has none."""

    resources: ResourcesByProvider
    project_id: str | None = None
    user_id: str | None = None
    generation: int | None = None
    consumer_type: str | None = None

    @classmethod
    def from_body(cls, body: Mapping[str, Any]) -> ConsumerState:
        """Parse a body of `GET /allocations/{consumer}`, or of the `PUT`."""
        type_ = body.get("consumer_type")
        return cls(
            resources={
                provider: dict(entry["resources"])
                for provider, entry in body["allocations"].items()
            },
            project_id=body.get("project_id"),
            user_id=body.get("user_id"),
            generation=body.get("consumer_generation"),
            consumer_type=None if type_ == _NO_TYPE else type_,
        )

    def body(self, resources: ResourcesByProvider, generation: int | None) -> Body:
        """A body that gives these resources to a consumer of the same project, user and type."""
        body: Body = {
            "allocations": {
                provider: {"resources": dict(amounts)} for provider, amounts in resources.items()
            },
            "project_id": self.project_id,
            "user_id": self.user_id,
            "consumer_generation": generation,
        }
        if self.consumer_type is not None:
            body["consumer_type"] = self.consumer_type
        return body

    def equals(self, sent: ConsumerState) -> bool:
        """Whether these are the allocations that were sent; the case of UUIDs does not matter.

        The server stores no project and user of a consumer without allocations.
        """
        if _spelt_as(self.resources, sent.resources) != self.resources:
            return False
        if sent.consumer_type is not None and self.consumer_type != sent.consumer_type:
            return not self.resources
        owner = (self.project_id, self.user_id)
        return not self.resources or owner == (sent.project_id, sent.user_id)


def at_least(version: str, needed: str) -> bool:
    """Whether a microversion is the needed one or a later one.

    >>> at_least("1.9", "1.28"), at_least("1.36", "1.28")
    (False, True)
    """
    return _numbers(version) >= _numbers(needed)


def require_version(version: str, needed: str, why: str) -> None:
    """Refuse a microversion that is older than the needed one."""
    if not at_least(version, needed):
        raise ValueError(f"version {version} is too old: {why}, so use {needed} or later")


def with_claim(consumer_uuid: str, present: ResourcesByProvider, wanted: Mapping[str, Any]) -> Body:
    """The allocations of a consumer that has made a claim: those that it has, and the claimed ones.

    `wanted` is the part `allocations` of an allocation request. The consumer may hold the same of
    a provider already, because a lost claim is made again. It must not hold anything else of it.

    >>> with_claim("consumer", {"a": {"VCPU": 1}}, {"b": {"resources": {"VCPU": 2}}})
    {'b': {'resources': {'VCPU': 2}}, 'a': {'resources': {'VCPU': 1}}}
    """
    claimed = _spelt_as(present, wanted)
    for provider, entry in claimed.items():
        held = present.get(provider)
        if held is not None and dict(held) != dict(entry["resources"]):
            raise AlreadyAllocated(
                f"The claim for consumer {consumer_uuid} was not made: it holds {_amounts(held)} "
                f"of provider {provider} already, and claims {_amounts(entry['resources'])}; add "
                "to its allocations with add_resources, or replace them with put_allocations",
                provider_uuid=provider,
            )
    return with_move(present, claimed)


def with_move(present: ResourcesByProvider, wanted: Mapping[str, Any]) -> Body:
    """The allocations of a consumer during a move, by the rule of Nova.

    The consumer keeps all that it has until the move is over. Of a provider that it uses already,
    nothing is claimed.

    >>> with_move({"a": {"VCPU": 1}}, {"a": {"resources": {"VCPU": 2}}})
    {'a': {'resources': {'VCPU': 1}}}
    """
    kept = {provider: {"resources": dict(amounts)} for provider, amounts in present.items()}
    return {**_spelt_as(present, wanted), **kept}


def claim_body(
    request: Mapping[str, Any],
    allocations: Body,
    *,
    project_id: str,
    user_id: str,
    version: str,
    generation: int | None,
    consumer_type: str | None,
) -> Body:
    """The body that gives a consumer these allocations.

    All other fields of the request, such as `mappings`, stay.
    """
    body: Body = {
        **request,
        "allocations": allocations,
        "project_id": project_id,
        "user_id": user_id,
    }
    if at_least(version, GENERATION_VERSION):
        body["consumer_generation"] = generation
    if at_least(version, TYPE_VERSION):
        body["consumer_type"] = consumer_type
    return body


def move_bodies(
    source_uuid: str, source: ConsumerState, target_uuid: str, target: ConsumerState
) -> dict[str, Body]:
    """The bodies, by consumer, that give all allocations of the source to the target."""
    return {
        source_uuid: source.body({}, source.generation),
        target_uuid: source.body(source.resources, target.generation),
    }


def reading_version(version: str | None) -> str:
    """The version to read a consumer with that is then written with this one."""
    return version if version and at_least(version, TYPE_VERSION) else GENERATION_VERSION


def writing_version(version: str, consumer_type: str | None) -> str:
    """The version to write a consumer with.

    A version that requires a consumer type cannot write a consumer without one. Before that
    version a consumer keeps the type that it has.
    """
    typeless = at_least(version, TYPE_VERSION) and consumer_type is None
    return _BEFORE_TYPE_VERSION if typeless else version


def swap_bodies(
    first_uuid: str, first: ConsumerState, second_uuid: str, second: ConsumerState
) -> dict[str, Body]:
    """The bodies, by consumer, that exchange the allocations of two consumers."""
    return {
        first_uuid: second.body(second.resources, first.generation),
        second_uuid: first.body(first.resources, second.generation),
    }


def with_resources(present: ResourcesByProvider, more: ResourcesByProvider) -> ResourcesByProvider:
    """The sum of two sets of resources.

    >>> with_resources({"a": {"VCPU": 1}}, {"a": {"VCPU": 2}, "b": {"DISK_GB": 5}})
    {'a': {'VCPU': 3}, 'b': {'DISK_GB': 5}}
    """
    result = {provider: dict(amounts) for provider, amounts in present.items()}
    for provider, amounts in _spelt_as(present, more).items():
        entry = result.setdefault(provider, {})
        for name, amount in amounts.items():
            entry[name] = entry.get(name, 0) + amount
    return result


def without_resources(
    present: ResourcesByProvider, less: ResourcesByProvider
) -> ResourcesByProvider:
    """The resources that are left; more than there are cannot be removed.

    >>> without_resources({"a": {"VCPU": 3}, "b": {"DISK_GB": 5}}, {"a": {"VCPU": 2}})
    {'a': {'VCPU': 1}, 'b': {'DISK_GB': 5}}
    >>> without_resources({"a": {"VCPU": 3}, "b": {"DISK_GB": 5}}, {"b": {"DISK_GB": 5}})
    {'a': {'VCPU': 3}}
    """
    result = {provider: dict(amounts) for provider, amounts in present.items()}
    for provider, amounts in _spelt_as(present, less).items():
        entry = result.get(provider, {})
        for name, amount in amounts.items():
            there = entry.get(name, 0)
            if there < amount:
                raise AllocationUpdateFailed(
                    f"{amount} of {name} on provider {provider} cannot be removed: the "
                    f"consumer has {there}; remove at most that",
                    provider_uuid=provider,
                )
            entry[name] = there - amount
    kept = {
        provider: {name: amount for name, amount in amounts.items() if amount}
        for provider, amounts in result.items()
    }
    return {provider: amounts for provider, amounts in kept.items() if amounts}


def without_providers(
    present: ResourcesByProvider, providers: Collection[str]
) -> ResourcesByProvider:
    """The resources that are left without those of some providers."""
    gone = {provider.lower() for provider in providers}
    return {
        provider: amounts for provider, amounts in present.items() if provider.lower() not in gone
    }


def require_amounts(resources: ResourcesByProvider) -> None:
    """Refuse resources without provider, class or positive amount."""
    if not resources:
        raise ValueError("no resources were given: name at least one provider with its amounts")
    for provider, amounts in resources.items():
        if not amounts:
            raise ValueError(
                f"no resources were given for provider {provider}: name its amounts, or leave the "
                "provider out"
            )
        for name, amount in amounts.items():
            if isinstance(amount, bool) or not isinstance(amount, int) or amount < 1:
                raise ValueError(
                    f"the amount of {name} on provider {provider} must be an integer of at "
                    f"least 1, not {amount!r}"
                )


def _amounts(resources: Resources) -> str:
    return ", ".join(f"{amount} {name}" for name, amount in sorted(resources.items()))


def _spelt_as(present: Mapping[str, Any], by_provider: Mapping[str, _Value]) -> dict[str, _Value]:
    """The same entries, with each provider in the spelling of `present`.

    Otherwise one provider in two spellings would count as two.
    """
    spellings = {provider.lower(): provider for provider in present}
    return {
        spellings.get(provider.lower(), provider): value for provider, value in by_provider.items()
    }


def _numbers(version: str) -> tuple[int, ...]:
    major, dot, minor = version.partition(".")
    if not (dot and major.isdecimal() and minor.isdecimal()):
        raise ValueError(f"{version!r} is no microversion: write it as in '1.36'")
    return int(major), int(minor)
