"""Queries for the search, from requests in notation and from query strings."""

from __future__ import annotations

from roost.api.candidates.query import parse_candidate_query
from roost.api.http.microversions import MAX_VERSION
from roost.api.http.requests import parse_query_string
from roost.model.candidate_query.query import CandidateQuery
from support.worlds.notation import write_query


def query_of(text: str) -> CandidateQuery:
    """The query of a request in notation."""
    return sent_query(write_query(text))


def sent_query(text: str) -> CandidateQuery:
    """The query of a query string in the extended grammar."""
    return parse_candidate_query(parse_query_string(text, 4000), MAX_VERSION, 256, extended=True)
