"""The microversions: a line about each, and the one that a request asks for."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

SERVICE_TYPE = "placement"
HEADER = "openstack-api-version"


class Microversion(NamedTuple):
    """A version of the API. Later versions are greater."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


# One line for each version. The last one is `latest`.
HISTORY: tuple[tuple[Microversion, str], ...] = tuple(
    (Microversion(1, minor), line)
    for minor, line in enumerate(
        (
            "providers, inventories, usages, allocations",
            "aggregates of providers",
            "resource classes",
            "member_of in GET /resource_providers",
            "resources in GET /resource_providers",
            "DELETE all inventories of a provider",
            "traits",
            "PUT /resource_classes/{name} creates or confirms, without a body",
            "project_id and user_id required in PUT /allocations/{consumer}",
            "GET /usages",
            "GET /allocation_candidates",
            "link to the allocations of a provider",
            "allocations keyed by provider; project_id and user_id shown",
            "POST /allocations for several consumers",
            "nested providers: parent, root and in_tree",
            "last-modified and cache-control headers",
            "limit in candidates",
            "required in candidates, traits in their summaries",
            "required in GET /resource_providers",
            "provider generation in aggregates, in both directions",
            "POST /resource_providers answers with the provider",
            "member_of in candidates",
            "forbidden traits",
            "code in errors",
            "member_of may be repeated",
            "numbered request groups and group_policy in candidates",
            "inventory with reserved equal to total",
            "all resource classes in the summaries of candidates",
            "consumer generations; empty allocations in PUT",
            "nested providers in candidates",
            "POST /reshaper",
            "in_tree in candidates",
            "forbidden aggregates",
            "named request groups in candidates",
            "mappings in candidates, accepted in allocations",
            "root_required in candidates",
            "same_subtree in candidates",
            "providers may be re-parented and un-parented",
            "consumer types",
            "any of several traits, and required repeated",
        )
    )
)
MIN_VERSION = HISTORY[0][0]
MAX_VERSION = HISTORY[-1][0]

_NUMBERS = re.compile(r"(-?\d+)\.(-?\d+)\Z", re.ASCII)


class InvalidVersion(Exception):
    """The header has no version that can be parsed."""


class UnacceptableVersion(Exception):
    """The header asks for a version that does not exist."""


@lru_cache(maxsize=256)
def negotiate(header: str | None) -> Microversion:
    """The version that the value of the header asks for.

    Entries for other services do not count. The last of several entries for placement counts.

    >>> [str(negotiate(header)) for header in ("compute 2.1, placement 1.10", None)]
    ['1.10', '1.0']
    """
    wanted = None
    for entry in (header or "").split(","):
        service, *rest = entry.split(None, 1)[:2] or [""]
        if service.lower() == SERVICE_TYPE and rest:
            wanted = rest[0].strip()
    if wanted is None:
        return MIN_VERSION
    if wanted == "latest":
        return MAX_VERSION
    numbers = _NUMBERS.match(wanted)
    if numbers is None or len(wanted) > 32:
        raise InvalidVersion(wanted)
    version = Microversion(int(numbers[1]), int(numbers[2]))
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise UnacceptableVersion(wanted)
    return version
