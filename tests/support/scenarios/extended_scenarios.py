"""Random clouds, and requests to them in the extended grammar of `GET /roost/candidates`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from roost.api.application import Application
from roost.configuration.settings import Settings
from roost.store.database import Database
from support.api_client import ApiClient, application_client
from support.scenarios.cloud import Cloud, Write, Writer
from support.scenarios.extended_requests import ExtendedRequest, extended_requests
from support.scenarios.oracle import World
from support.scenarios.random_clouds import Draw, choose, foundings
from support.scenarios.scenario import drawing, query_text, readable
from support.store.table_cleaning import clean_tables

REQUESTS_MAX = 6


@st.composite
def clouds(draw: Draw) -> tuple[list[Write], World, list[ExtendedRequest]]:
    """The writes that make a cloud, the cloud, and requests to it."""
    writes = list(draw(foundings()))
    cloud = Cloud()
    for write in writes:
        cloud = write.apply(cloud)
    asked = [draw(extended_requests(cloud)) for _ in range(choose(draw, [2, REQUESTS_MAX]))]
    return writes, cloud.world(), asked


def send_all(api: ApiClient, writes: list[Write]) -> None:
    """Make a cloud."""

    def ask(method: str, path: str, version: str, body: Any) -> tuple[int, Any]:
        answer = api.at(version).request(method, path, body)
        return answer.status, answer.json if answer.body else None

    writer = Writer(ask)
    for write in writes:
        write.send(writer)


def ask_clouds(
    database: Database,
    service: Settings,
    examples: int,
    check: Callable[[ApiClient, World, ExtendedRequest], None],
) -> None:
    """Check every request to this number of clouds."""

    @settings(
        max_examples=examples,
        deadline=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(clouds())
    def tell(made: tuple[list[Write], World, list[ExtendedRequest]]) -> None:
        writes, world, asked = made
        database.write_at_once(clean_tables)
        api = application_client(Application(service, database))
        send_all(api, writes)
        for request in asked:
            try:
                check(api, world, request)
            except AssertionError as error:
                error.add_note(readable(f"world: {drawing(world)}\n{query_text(request)}"))
                raise

    tell()
