"""The keys of request groups: what each asks for, and how its values become a field of a group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from roost.api.http.errors import HttpError, bad_value, sent_twice
from roost.api.http.json_schemas import EXAMPLE_AGGREGATE, EXAMPLE_PROVIDER
from roost.api.http.microversions import MIN_VERSION, Microversion
from roost.api.http.query_values import parse_member_of, parse_required, parse_resources
from roost.api.routing import RequestParameter
from roost.model.identifiers import is_uuid

# No provider has a longer name.
_NAME_LENGTH_MAX = 200

# From values, version and key with suffix to what the field of the group holds.
ParseValues: TypeAlias = Callable[[Sequence[str], Microversion, str], object]


@dataclass(frozen=True, slots=True)
class GroupKey:
    """A key that may have the suffix of a request group."""

    parameter: RequestParameter
    # The name of the field of `RequestGroup`.
    field: str
    parse: ParseValues
    # Whether all values count, and the parser gets them at once. Otherwise the last value counts,
    # and the parser gets each value by itself.
    takes_all: bool = False

    @property
    def name(self) -> str:
        """The key without a suffix."""
        return self.parameter.name


def _resources(values: Sequence[str], version: Microversion, key: str) -> dict[str, int]:
    return parse_resources(values[-1])


def _alternatives(
    values: Sequence[str], version: Microversion, key: str
) -> tuple[dict[str, int], ...]:
    return tuple(map(parse_resources, values))


def _in_tree(values: Sequence[str], version: Microversion, key: str) -> str:
    uuid = values[-1].strip()
    if not is_uuid(uuid):
        raise HttpError(
            400,
            "Invalid query string parameters: Expected 'in_tree' parameter to be a format of "
            f"uuid. Got: {values[-1]}",
        )
    return uuid


def _provider(values: Sequence[str], version: Microversion, key: str) -> str:
    """The uuid or the name of a provider."""
    reference = values[-1].strip()
    if not 0 < len(reference) <= _NAME_LENGTH_MAX:
        raise bad_value(f"{key} needs the uuid or the name of a provider. Got: {reference[:40]!r}")
    return reference


def _only_provider(values: Sequence[str], version: Microversion, key: str) -> str:
    """The uuid or the name of a provider, which a client may send once."""
    if len(values) > 1:
        raise sent_twice(key)
    return _provider(values, version, key)


# Those of `GET /allocation_candidates`.
GROUP_KEYS = (
    GroupKey(
        RequestParameter(
            "resources",
            "The amounts that a candidate must have, by resource class.",
            "VCPU:4,MEMORY_MB:8192",
        ),
        "resources",
        _resources,
    ),
    GroupKey(
        RequestParameter(
            "required",
            "Traits that the providers must have, or, from 1.22 on and after a `!`, must not have. "
            "From 1.39 on `in:A,B` means at least one of several.",
            "HW_CPU_X86_AVX2,!CUSTOM_OLD",
            repeated_since=Microversion(1, 39),
        ),
        "traits",
        parse_required,
        takes_all=True,
    ),
    GroupKey(
        RequestParameter(
            "member_of",
            "The aggregate of the providers. `in:A,B` means at least one of several, and, from "
            "1.32 on, `!A` or `!in:A,B` none of them.",
            f"in:{EXAMPLE_AGGREGATE}",
            repeated_since=Microversion(1, 24),
        ),
        "aggregates",
        parse_member_of,
        takes_all=True,
    ),
    GroupKey(
        RequestParameter(
            "in_tree", "The tree of this provider, and no other tree.", EXAMPLE_PROVIDER
        ),
        "in_tree",
        _in_tree,
    ),
)

# Those of `GET /roost/candidates`: no version of the API has these, or has them with this meaning.
EXTENDED_GROUP_KEYS = (
    *GROUP_KEYS[:-1],
    GroupKey(
        RequestParameter("in_tree", "The tree of this provider, by uuid or name.", "host-1"),
        "in_tree",
        _provider,
    ),
    GroupKey(
        RequestParameter(
            "in_subtree", "The providers are this one, by uuid or name, or below it.", "host-1"
        ),
        "in_subtree",
        _only_provider,
        takes_all=True,
    ),
    GroupKey(
        RequestParameter(
            "or_resources",
            "Amounts to take in trees where `resources` of the same group do not fit, in order of "
            "preference.",
            "VCPU:2",
            repeated_since=MIN_VERSION,
        ),
        "alternatives",
        _alternatives,
        takes_all=True,
    ),
)
