"""The query string of a route under `/roost/`: its own parameters, and a candidate query.

Whatever microversion a client sends, a candidate query means what it means at the newest one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from roost.api.candidates.query import parse_candidate_query, parse_query_text
from roost.api.http.errors import bad_value, sent_twice
from roost.api.http.json_schemas import EXAMPLE_AGGREGATE, Document
from roost.api.http.microversions import MAX_VERSION
from roost.api.http.requests import Request
from roost.api.routing import RequestParameter
from roost.api.services import Services
from roost.model.candidate_query.query import CandidateQuery
from roost.model.identifiers import canonical_uuid, is_uuid
from roost.service.questions.candidates import with_resolved_places
from roost.service.questions.roots import AskedRoots

QUESTIONS = "Questions"
"""The tag of the routes that take a candidate query."""
NUMBER: Document = {"type": "string", "pattern": "^[0-9]{1,10}$"}
# The parameters by which a list leaves roots out.
ROOT_PARAMETERS = (
    RequestParameter(
        "name", "Only roots with this name; `*` stands for any characters.", "compute-*"
    ),
    RequestParameter("trait", "Only trees in which a provider has the trait.", "HW_CPU_X86_VMX"),
    RequestParameter(
        "aggregate", "Only trees in which a provider is in the aggregate.", EXAMPLE_AGGREGATE
    ),
)


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters of a request, after the route has named its own."""

    own: Mapping[str, str]
    # All remaining pairs, in their order: they belong to the candidate query.
    rest: list[tuple[str, str]]

    def integer(self, name: str, default: int, *, least: int, most: int) -> int:
        """A number among the route's own parameters; 400 if it is no number in this range."""
        text = self.own.get(name)
        if text is None:
            return default
        # Ten digits are more than any bound has.
        if text.isascii() and text.isdigit() and len(text) <= 10 and least <= int(text) <= most:
            return int(text)
        raise bad_value(f"{name} is {text[:40]!r}. Send a number from {least} to {most}.")


def split_parameters(request: Request, own: Collection[str]) -> Parameters:
    """The parameters with these names, each at most once, and the rest; 400 if one is repeated."""
    found: dict[str, str] = {}
    rest: list[tuple[str, str]] = []
    for name, value in request.query():
        if name not in own:
            rest.append((name, value))
        elif name in found:
            raise sent_twice(name)
        else:
            found[name] = value
    return Parameters(found, rest)


def refuse_rest(parameters: Parameters, own: Collection[str]) -> None:
    """400 if the query string has a parameter besides the route's own."""
    if parameters.rest:
        name, known = parameters.rest[0][0], ", ".join(own)
        raise bad_value(
            f"{name[:40]!r} is no parameter of this route. Leave it out: the route takes {known}."
        )


def read_query(services: Services, pairs: list[tuple[str, str]]) -> CandidateQuery:
    """The candidate query in these pairs, in the grammar of `GET /roost/candidates`.

    400 with the reason if they are none; 404 if a provider in it has no such name.
    """
    groups_max = services.settings.limits.max_request_groups
    query = parse_candidate_query(pairs, MAX_VERSION, groups_max, extended=True)
    return resolve_places(services, query)


def places_of(query: CandidateQuery) -> list[str | None]:
    """The providers that the groups of a query name."""
    return [place for group in query.groups for place in (group.in_tree, group.in_subtree)]


def read_query_text(services: Services, text: str) -> CandidateQuery:
    """The candidate query in a query string that a JSON body or a parameter has."""
    return resolve_places(services, parse_query_text(text, services.settings.limits))


def resolve_places(services: Services, query: CandidateQuery) -> CandidateQuery:
    """The query with uuids where it has names of providers; 404 if there is no such name."""
    return services.read(with_resolved_places, query) if any(places_of(query)) else query


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
