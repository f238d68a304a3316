"""Answers that are no placement server's: a sentence, whatever they are."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import pytest

from roost.client.errors import PlacementError, UnreadableAnswer
from roost.client.reporting.reporter import Reporter
from roost.client.transport import Request, Response

HOST = str(uuid4())
PROVIDER = {
    "uuid": HOST,
    "name": "host",
    "generation": 1,
    "parent_provider_uuid": None,
    "root_provider_uuid": HOST,
}


class OddServer:
    """Answers with what it was given, by the end of the path."""

    def __init__(self, **bodies: Any) -> None:
        self._bodies = {
            "resource_providers": {"resource_providers": [PROVIDER]},
            "inventories": {"resource_provider_generation": 1, "inventories": {}},
            "aggregates": {"resource_provider_generation": 1, "aggregates": []},
            "traits": {"resource_provider_generation": 1, "traits": []},
        } | bodies

    def send(self, request: Request) -> Response:
        name = request.path.partition("?")[0].rsplit("/", 1)[-1]
        body = self._bodies[name]
        return Response(200, {}, body if isinstance(body, bytes) else json.dumps(body).encode())

    def close(self) -> None:
        """There is nothing to let go of."""


def test_the_even_server_is_understood() -> None:
    assert Reporter(OddServer()).fetch(HOST).data(HOST).name == "host"


@pytest.mark.parametrize(
    "odd",
    [
        {"resource_providers": b"<html>"},
        {"resource_providers": b"[" * 100_000},
        {"resource_providers": []},
        {"resource_providers": {"resource_providers": 5}},
        {"resource_providers": {"resource_providers": [5]}},
        {"resource_providers": {"resource_providers": [PROVIDER | {"uuid": 5}]}},
        {"resource_providers": {"resource_providers": [PROVIDER | {"generation": None}]}},
        {"resource_providers": {"resource_providers": [PROVIDER | {"parent_provider_uuid": HOST}]}},
        {"resource_providers": {"resource_providers": [PROVIDER | {"parent_provider_uuid": "x"}]}},
        {"inventories": {"resource_provider_generation": 1, "inventories": [1]}},
        {"inventories": {"resource_provider_generation": 1, "inventories": {"VCPU": 1}}},
        {"inventories": {"resource_provider_generation": "1", "inventories": {}}},
        {"aggregates": {"resource_provider_generation": 1, "aggregates": [1, []]}},
        {"aggregates": {"resource_provider_generation": 1, "aggregates": 5}},
        {"traits": {"resource_provider_generation": 1, "traits": [None]}},
        {"traits": {}},
    ],
    ids=str,
)
def test_an_odd_answer_is_said_to_be_one(odd: dict[str, Any]) -> None:
    with pytest.raises(UnreadableAnswer):
        Reporter(OddServer(**odd)).fetch(HOST)


@pytest.mark.parametrize("status", [401, 403])
def test_who_is_not_let_in_is_told_where_to_look(status: int) -> None:
    class Closed(OddServer):
        def send(self, request: Request) -> Response:
            return Response(status)

    with pytest.raises(PlacementError, match="see --token, ROOST_TOKEN"):
        Reporter(Closed()).fetch(HOST)
