"""Values in the query strings of several routes: traits, aggregates, amounts."""

from __future__ import annotations

import re
from collections.abc import Sequence

from roost.api.http.errors import HttpError, OverLimit
from roost.api.http.microversions import Microversion
from roost.model.identifiers import canonical_uuid, is_uuid
from roost.model.providers import AggregateFilter, TraitFilter

_REPETITIONS_MAX = 200
# There are fewer standard traits, and fewer standard resource classes.
_NAMES_MAX = 1000
_INVALID = "Invalid query string parameters: "
_ANY_FORM = "in:HW_CPU_X86_VMX,CUSTOM_MAGIC"

_NUMBER = re.compile(r"\s*+([+-]?)([0-9]++)\s*+\Z")
# Python reads up to 4300 digits.
_DIGITS_MAX = 4_000


def check_repetitions(key: str, values: Sequence[str]) -> None:
    """Refuse many repetitions: each is a condition on every provider."""
    if len(values) > _REPETITIONS_MAX:
        raise OverLimit(
            400,
            f"{_INVALID}'{key}' is given {len(values)} times; {_REPETITIONS_MAX} are allowed.",
            "repetitions",
        )


def _check_names(key: str, count: int, kind: str) -> None:
    """Refuse many names: each is a condition on every provider."""
    if count > _NAMES_MAX:
        raise OverLimit(
            400,
            f"{_INVALID}'{key}' names {count} {kind}; {_NAMES_MAX} are allowed at once.",
            "names",
        )


def parse_member_of(
    values: Sequence[str], version: Microversion, key: str = "member_of"
) -> AggregateFilter:
    """`member_of`, which may be repeated from 1.24 and negated from 1.32 on.

    The uuids are returned in their canonical spelling.
    """
    if len(values) > 1 and version < (1, 24):
        raise HttpError(400, f"Multiple {key} parameters are not supported")
    check_repetitions(key, values)
    any_of: list[tuple[str, ...]] = []
    forbidden: list[str] = []
    for value in values:
        uuids = _aggregates(value)
        if not value.startswith("!"):
            any_of.append(uuids)
            continue
        if version < (1, 32):
            raise HttpError(
                400, f"Forbidden {key} parameters are not supported in the specified microversion"
            )
        forbidden += uuids
    return AggregateFilter(tuple(any_of), tuple(forbidden))


def _aggregates(value: str) -> tuple[str, ...]:
    listing = value.removeprefix("!")
    uuids = tuple(listing.removeprefix("in:").split(","))
    if len(uuids) > 1 and not listing.startswith("in:"):
        raise HttpError(
            400,
            "Multiple values for 'member_of' must be prefixed with the 'in:' or '!in:' keyword "
            f"using the valid microversion. Got: {value}",
        )
    for uuid in uuids:
        if not is_uuid(uuid):
            raise HttpError(
                400,
                f"{_INVALID}Expected 'member_of' parameter to contain valid UUID(s). Got: {uuid}",
            )
    return tuple(map(canonical_uuid, uuids))


def parse_required(
    values: Sequence[str], version: Microversion, key: str = "required"
) -> TraitFilter:
    """`required`: traits; from 1.22 on also forbidden ones, from 1.39 on also one of several.

    From 1.39 on the key may be repeated. Before, its last value counts.
    """
    if version < (1, 39):
        values = values[-1:]
    check_repetitions(key, values)
    required: list[str] = []
    any_of: list[tuple[str, ...]] = []
    forbidden: list[str] = []
    for value in values:
        if value.startswith("in:") and version >= (1, 39):
            any_of.append(_alternatives(value))
            continue
        traits = parse_traits(value, negation=version >= (1, 22))
        required += traits.required
        forbidden += traits.forbidden
    _check_names(key, len(required) + sum(map(len, any_of)) + len(forbidden), "traits")
    return TraitFilter(tuple(required), tuple(any_of), tuple(forbidden))


def parse_traits(value: str, *, negation: bool = True) -> TraitFilter:
    """Required traits and, after a `!`, forbidden ones: one list without alternatives."""
    if value.startswith("in:"):
        raise HttpError(
            400,
            f"{_INVALID}The format '{_ANY_FORM}' only supported since microversion 1.39. "
            f"Got: {value}",
        )
    form = "HW_CPU_X86_VMX,!CUSTOM_MAGIC" if negation else "HW_CPU_X86_VMX,CUSTOM_MAGIC"
    required: list[str] = []
    forbidden: list[str] = []
    for part in value.split(","):
        word = part.strip()
        # A blank after the `!` stays in the name. No trait has such a name.
        name = word.lstrip("!")
        if not name:
            raise HttpError(400, f"{_expected(form)}Got an empty trait in: {value}")
        (forbidden if word.startswith("!") else required).append(name)
    if forbidden and not negation:
        raise HttpError(400, f"{_expected(form)}Got: {value}")
    return TraitFilter(tuple(required), (), tuple(forbidden))


def _alternatives(value: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in value.removeprefix("in:").split(","))
    if not all(names):
        raise HttpError(400, f"{_expected(_ANY_FORM)}Got an empty trait in: {value}")
    if any(name.startswith("!") for name in names):
        raise HttpError(
            400,
            f"{_INVALID}The format '{_ANY_FORM}' does not support forbidden traits. Got: {value}",
        )
    return names


def _expected(form: str) -> str:
    return f"{_INVALID}Expected 'required' parameter value of the form: {form}. "


def parse_resources(value: str) -> dict[str, int]:
    """`resources=VCPU:2,DISK_GB:5`; the last amount of a resource class counts."""
    resources: dict[str, int] = {}
    for part in value.split(","):
        name, *amounts = part.split(":")
        if len(amounts) != 1:
            got = part if value.strip() else "empty string"
            raise HttpError(
                400,
                "Badly formed resources parameter. Expected resources query string parameter in "
                f"form: ?resources=VCPU:2,MEMORY_MB:1024. Got: {got}.",
            )
        resources[name] = _amount(name, amounts[0])
    _check_names("resources", len(resources), "resource classes")
    return resources


def _amount(name: str, text: str) -> int:
    try:
        amount = parse_integer(text)
    except ValueError:
        raise HttpError(
            400, f"Requested resource {name} expected positive integer amount. Got: {text}."
        ) from None
    if amount < 1:
        raise HttpError(400, f"Requested resource {name} requires amount >= 1. Got: {amount}.")
    return amount


def parse_integer(text: str) -> int:
    """A number of any length, as `int` reads it; ValueError if the text is no number.

    A number with thousands of digits exceeds every capacity, so it is cut to its first ones.

    >>> parse_integer("0" * 9000 + "7"), parse_integer("7" * 9000) > 10**3000
    (7, True)
    """
    try:
        return int(text)
    except ValueError:
        number = _NUMBER.match(text)
        if number is None:
            raise
        digits = number[2].lstrip("0")[:_DIGITS_MAX] or "0"
        return int(number[1] + digits)
