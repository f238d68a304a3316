"""The named queries of an operator, parsed as the API parses those of clients."""

from __future__ import annotations

from dataclasses import dataclass

from roost.api.candidates.query import parse_query_text
from roost.api.http.errors import HttpError
from roost.configuration.settings import ConfigurationError, Settings
from roost.model.candidate_query.query import CandidateQuery


@dataclass(frozen=True, slots=True)
class NamedQuery:
    """A query, its name in `/metrics`, and the line that it comes from."""

    name: str
    query: CandidateQuery
    place: str


def named_queries(settings: Settings) -> tuple[NamedQuery, ...]:
    """The queries of the settings; `ConfigurationError` with the line of one that is none.

    A class, trait or provider that does not exist is no mistake here: a host may bring it later.
    """
    if not settings.watch.metrics:
        return ()
    found = []
    for line in settings.watch.queries:
        try:
            query = parse_query_text(line.query, settings.limits)
        except HttpError as error:
            raise ConfigurationError(
                f"{line.place}: the query {line.name} cannot be used. {error.text}"
            ) from None
        found.append(NamedQuery(line.name, query, line.place))
    return tuple(found)
