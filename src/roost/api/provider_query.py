"""The query string of `GET /resource_providers`."""

from __future__ import annotations

from roost.api.errors import HttpError
from roost.api.microversions import Microversion
from roost.api.schemas import providers as schemas
from roost.api.validation import check_query
from roost.model.identifiers import canonical_uuid, is_uuid
from roost.model.providers import AggregateFilter, ProviderFilter, TraitFilter

_REPETITIONS_MAX = 200


def parse_provider_query(pairs: list[tuple[str, str]], version: Microversion) -> ProviderFilter:
    """What a query asks for; 400 with the reason if it cannot be understood."""
    values = check_query(pairs, schemas.LIST.at(version))
    return ProviderFilter(
        name=values.get("name"),
        uuid=values.get("uuid"),
        in_tree=values.get("in_tree"),
        aggregates=parse_member_of(_values(pairs, "member_of"), version),
        traits=parse_required(_values(pairs, "required"), version),
        resources=parse_resources(values["resources"]) if "resources" in values else {},
    )


def _values(pairs: list[tuple[str, str]], wanted: str) -> list[str]:
    return [value for key, value in pairs if key == wanted]


def parse_member_of(values: list[str], version: Microversion) -> AggregateFilter:
    """`member_of`, which may be repeated from 1.24 and negated from 1.32 on."""
    if len(values) > 1 and version < (1, 24):
        raise HttpError(400, "Multiple member_of parameters are not supported")
    _check_repetitions("member_of", values)
    any_of: list[tuple[str, ...]] = []
    forbidden: list[str] = []
    for value in values:
        negated = value.startswith("!")
        uuids = _aggregates(value.removeprefix("!"))
        if not negated:
            any_of.append(uuids)
            continue
        if version < (1, 32):
            raise HttpError(
                400,
                "Forbidden member_of parameters are not supported in the specified microversion",
            )
        forbidden += uuids
    return AggregateFilter(tuple(any_of), tuple(forbidden))


def _aggregates(value: str) -> tuple[str, ...]:
    listed = value.startswith("in:")
    uuids = value.removeprefix("in:").split(",")
    if len(uuids) > 1 and not listed:
        raise HttpError(
            400,
            "Multiple values for 'member_of' must be prefixed with the 'in:' or '!in:' keyword "
            "using the valid microversion.",
        )
    for uuid in uuids:
        if not is_uuid(uuid):
            raise HttpError(
                400,
                "Invalid query string parameters: Expected 'member_of' parameter to contain "
                f"valid UUID(s). Got: {uuid}",
            )
    return tuple(canonical_uuid(uuid) for uuid in uuids)


def _check_repetitions(name: str, values: list[str]) -> None:
    """Each repetition is a condition of its own, and databases limit those."""
    if len(values) > _REPETITIONS_MAX:
        raise HttpError(
            400,
            f"Invalid query string parameters: '{name}' is given {len(values)} times; "
            f"{_REPETITIONS_MAX} are allowed.",
        )


def parse_required(values: list[str], version: Microversion) -> TraitFilter:
    """`required`: traits to have, from 1.22 to lack, from 1.39 to have one of (and repeated)."""
    if version < (1, 39):
        # A repeated key counts once, with its last value.
        values = values[-1:]
    _check_repetitions("required", values)
    required: list[str] = []
    any_of: list[tuple[str, ...]] = []
    forbidden: list[str] = []
    for value in values:
        if value.startswith("in:"):
            any_of.append(_alternatives(value, version))
            continue
        for part in value.split(","):
            name = part.strip()
            if not name.startswith("!"):
                required.append(_trait(name, value, version))
                continue
            forbidden.append(_trait(name.lstrip("!").strip(), value, version))
            if version < (1, 22):
                raise HttpError(400, f"{_expected(version)}Got: {value}")
    return TraitFilter(tuple(required), tuple(any_of), tuple(forbidden))


def _trait(name: str, value: str, version: Microversion) -> str:
    if not name:
        raise HttpError(400, f"{_expected(version)}Got an empty trait in: {value}")
    return name


def _expected(version: Microversion) -> str:
    example = "!CUSTOM_MAGIC" if version >= (1, 22) else "CUSTOM_MAGIC"
    return (
        "Invalid query string parameters: Expected 'required' parameter value of the form: "
        f"HW_CPU_X86_VMX,{example}. "
    )


def _alternatives(value: str, version: Microversion) -> tuple[str, ...]:
    if version < (1, 39):
        raise HttpError(
            400,
            "Invalid query string parameters: The format 'in:HW_CPU_X86_VMX,CUSTOM_MAGIC' only "
            f"supported since microversion 1.39. Got: {value}",
        )
    names = tuple(name.strip() for name in value.removeprefix("in:").split(","))
    if not all(names):
        raise HttpError(
            400,
            "Invalid query string parameters: Expected 'required' parameter value of the form: "
            f"in:HW_CPU_X86_VMX,CUSTOM_MAGIC. Got an empty trait in: {value}",
        )
    if any(name.startswith("!") for name in names):
        raise HttpError(
            400,
            "Invalid query string parameters: The format 'in:HW_CPU_X86_VMX,CUSTOM_MAGIC' does "
            f"not support forbidden traits. Got: {value}",
        )
    return names


def parse_resources(value: str) -> dict[str, int]:
    """`resources=VCPU:2,DISK_GB:5`; of a class that is named twice the last amount counts."""
    resources: dict[str, int] = {}
    for part in value.split(","):
        name, *amounts = part.split(":")
        if len(amounts) != 1:
            got = part if value else "empty string"
            raise HttpError(
                400,
                "Badly formed resources parameter. Expected resources query string parameter in "
                f"form: ?resources=VCPU:2,MEMORY_MB:1024. Got: {got}.",
            )
        resources[name] = _amount(name, amounts[0])
    return resources


def _amount(name: str, text: str) -> int:
    try:
        amount = int(text)
    except ValueError:
        raise HttpError(
            400, f"Requested resource {name} expected positive integer amount. Got: {text}."
        ) from None
    if amount < 1:
        raise HttpError(400, f"Requested resource {name} requires amount >= 1. Got: {amount}.")
    return amount
