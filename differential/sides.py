"""The two sides of a comparison: live services, or the exhaustive search instead of Roost."""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass
from typing import Any, Protocol

from support.scenarios.answers import Found, as_shown, read_answer
from support.scenarios.cloud import Cloud, Write, Writer, clearing
from support.scenarios.oracle import candidates, summaries
from support.scenarios.requests import Request


@dataclass(frozen=True)
class Reply:
    """A status, with the candidates of a good answer or the text of an error."""

    status: int
    found: Found | None = None
    text: str = ""


class Side(Protocol):
    """A keeper of a cloud that answers requests for candidates."""

    name: str

    def write(self, write: Write) -> None:
        """Change the cloud."""

    def reply(self, request: Request) -> Reply:
        """Answer a request for candidates."""

    def clear(self, cloud: Cloud) -> None:
        """Remove the cloud, whose present contents are given."""


class Service:
    """A live service."""

    def __init__(self, name: str, port: int) -> None:
        self.name = name
        self._port = port
        self._writer = Writer(self._ask)

    def write(self, write: Write) -> None:
        """Change the cloud."""
        write.send(self._writer)

    def reply(self, request: Request) -> Reply:
        """Answer a request for candidates."""
        status, body = self._ask("GET", request.path, request.version, None)
        if status != 200:
            return Reply(status, text=str(body))
        return Reply(status, read_answer(body, request.query.minor))

    def clear(self, cloud: Cloud) -> None:
        """Remove the cloud. Parts that do not exist are passed over."""
        for write in clearing(cloud):
            try:
                self.write(write)
            except AssertionError as error:
                if ": 404 " not in str(error):
                    raise

    def _ask(self, method: str, path: str, version: str, body: Any) -> tuple[int, Any]:
        # The server under the reference closes every connection, so none is kept.
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=120)
        headers = {
            "X-Auth-Token": "admin",
            "Accept": "application/json",
            "OpenStack-API-Version": f"placement {version}",
        }
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        try:
            connection.request(method, path, data, headers)
            response = connection.getresponse()
            answer = response.read()
        finally:
            connection.close()
        return response.status, json.loads(answer) if answer else None


class Oracle:
    """The exhaustive search of the tests, which the reference checks here."""

    name = "oracle"

    def __init__(self) -> None:
        self._cloud = Cloud()

    def write(self, write: Write) -> None:
        """Change the cloud."""
        self._cloud = write.apply(self._cloud)

    def reply(self, request: Request) -> Reply:
        """Answer a request for candidates."""
        if request.mishap is not None:
            status = request.mishap.right
            return Reply(status, Found((), {}) if status == 200 else None)
        world, query = self._cloud.world(), request.query
        shown = list(as_shown(candidates(world, query), query.minor).elements())[: query.limit]
        return Reply(200, Found(tuple(shown), summaries(world, query, shown)))

    def clear(self, cloud: Cloud) -> None:
        """Forget the cloud."""
        self._cloud = Cloud()
