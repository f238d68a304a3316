"""The filters of `GET /resource_providers` that a fake server knows."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from roost.client.testing.cloud import FakeCloud, FakeProvider, FakeRefusal
from roost.client.testing.fake_request import FakeRequest, uuid_in

_SINCE = {"name": 0, "uuid": 0, "member_of": 3, "in_tree": 14, "required": 18}


def chosen_providers(cloud: FakeCloud, request: FakeRequest) -> list[FakeProvider]:
    """The providers that pass all filters."""
    found = list(cloud.providers.values())
    for key, values in request.query.items():
        if request.minor < _SINCE.get(key, 100):
            raise FakeRefusal(
                400, f"Invalid query string parameters: the fake server has no filter {key} here"
            )
        for value in values:
            found = [each for each in found if _passes(cloud, each, key, value)]
            if key == "required" and (unknown := _without_marks(value) - cloud.traits):
                raise FakeRefusal(400, f"No such trait(s): {', '.join(sorted(unknown))}.")
    return found


def _passes(cloud: FakeCloud, provider: FakeProvider, key: str, value: str) -> bool:
    if key == "name":
        return provider.name == value
    if key == "uuid":
        return provider.uuid == uuid_in(value, "uuid")
    if key == "in_tree":
        asked = cloud.providers.get(uuid_in(value, "in_tree"))
        return asked is not None and cloud.root_of(provider) == cloud.root_of(asked)
    if key == "member_of":
        return _has(provider.aggregates, value, all)
    return _has(provider.traits, value, all)


def _has(present: set[str], value: str, by_default: Callable[[Iterable[bool]], bool]) -> bool:
    """Whether a provider has what a value asks for: `a,b` (all), `in:a,b` (one), `!a` (not)."""
    if value.startswith("!"):
        return not _has(present, value[1:], any)
    if value.startswith("in:"):
        return any(name in present for name in value[3:].split(","))
    names = value.split(",")
    wanted = [name for name in names if not name.startswith("!")]
    unwanted = {name[1:] for name in names if name.startswith("!")}
    return by_default(name in present for name in wanted) and not unwanted & present


def _without_marks(value: str) -> set[str]:
    return {name.removeprefix("!") for name in value.removeprefix("in:").split(",")}
