"""The requests of a random scenario, each with the world that it asks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from roost.api.candidates.query import parse_candidate_query
from roost.api.http.microversions import MAX_VERSION
from roost.model.candidate_query.query import CandidateQuery
from support.scenarios.cloud import Cloud
from support.scenarios.oracle import World
from support.scenarios.requests import Request
from support.scenarios.scenario import Scenario

_LATEST = f"{MAX_VERSION.major}.{MAX_VERSION.minor}"


class RequestedWorld(NamedTuple):
    """A request at the latest version, as the oracle and as the search take it."""

    world: World
    request: Request
    query: CandidateQuery


def latest_requests(scenario: Scenario) -> Iterator[RequestedWorld]:
    """Each valid request at the latest version, with the world at its time."""
    cloud = Cloud()
    for step in scenario.steps:
        if not isinstance(step, Request):
            cloud = step.apply(cloud)
        elif step.mishap is None and step.version == _LATEST:
            query = parse_candidate_query(list(step.parameters), MAX_VERSION, 256)
            yield RequestedWorld(cloud.world(), step, query)
