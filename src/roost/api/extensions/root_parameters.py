"""The parameters by which a list under `/roost/` leaves roots out."""

from __future__ import annotations

from collections.abc import Mapping

from roost.api.http.errors import bad_value
from roost.api.http.json_schemas import EXAMPLE_AGGREGATE
from roost.api.routing import RequestParameter
from roost.model.identifiers import canonical_uuid, is_uuid
from roost.service.questions.roots import AskedRoots

ROOT_PARAMETERS = (
    RequestParameter(
        "name", "Only roots with this name; `*` stands for any characters.", "compute-*"
    ),
    RequestParameter("trait", "Only trees in which a provider has the trait.", "HW_CPU_X86_VMX"),
    RequestParameter(
        "aggregate", "Only trees in which a provider is in the aggregate.", EXAMPLE_AGGREGATE
    ),
)


def asked_roots(own: Mapping[str, str]) -> AskedRoots:
    """The roots that the parameters ask for; 400 if the aggregate is no uuid.

    A parameter without a value, as a form sends it, asks nothing.
    """
    aggregate = own.get("aggregate") or None
    if aggregate is not None and not is_uuid(aggregate):
        raise bad_value(f"aggregate is {aggregate[:40]!r}. Send the uuid of an aggregate.")
    return AskedRoots(
        name=own.get("name") or None,
        trait=own.get("trait") or None,
        aggregate=None if aggregate is None else canonical_uuid(aggregate),
    )
