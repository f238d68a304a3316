"""Small writes, and readers of `GET /roost/changes`: page by page, and as a stream of events."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlencode

from roost.api.application import Application
from roost.model.identifiers import new_uuid
from support.api_client import Answer, ApiClient, environ_of
from support.raw_client import RawClient, request
from support.waiting import SECONDS_MAX

EVENTS = "text/event-stream"


def changes_path(**parameters: object) -> str:
    """The address of the route with these parameters; those that are `None` are left out."""
    given = {name: value for name, value in parameters.items() if value is not None}
    return f"/roost/changes?{urlencode(given)}"


def ask(api: ApiClient, **parameters: object) -> Any:
    """One page."""
    answer = api.get(changes_path(**parameters))
    assert answer.status == 200, answer.body
    return answer.json


def now(api: ApiClient) -> str:
    """The cursor after everything that was written."""
    cursor: str = ask(api)["next"]
    return cursor


def all_changes(api: ApiClient, since: str, **parameters: object) -> list[dict[str, Any]]:
    """The changes of all pages since a cursor."""
    found: list[dict[str, Any]] = []
    more = True
    while more:
        page = ask(api, since=since, **parameters)
        found += page["changes"]
        since, more = page["next"], page["more"]
    return found


def make_host(api: ApiClient, parent: str | None = None, **totals: int) -> str:
    """A provider with these inventories."""
    uuid = new_uuid()
    body: dict[str, Any] = {"name": f"host {uuid}", "uuid": uuid, "parent_provider_uuid": parent}
    answer = api.post("/resource_providers", body)
    assert answer.status == 200, answer.body
    if totals:
        inventories = {name: {"total": total} for name, total in totals.items()}
        body = {"resource_provider_generation": 0, "inventories": inventories}
        assert api.put(f"/resource_providers/{uuid}/inventories", body).status == 200
    return uuid


def claim(api: ApiClient, *hosts: str, consumer: str | None = None, **amounts: int) -> Answer:
    """Let a new consumer hold these amounts of each host; by default one `VCPU`."""
    body = {
        "allocations": {host: {"resources": amounts or {"VCPU": 1}} for host in hosts},
        "project_id": "lab",
        "user_id": "ann",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    answer = api.put(f"/allocations/{consumer or new_uuid()}", body)
    assert answer.status == 204, answer.body
    return answer


def request_id(answer: Answer) -> str:
    """The id of the request of an answer."""
    return answer.headers["x-openstack-request-id"]


def requests_of(changes: list[dict[str, Any]]) -> list[str]:
    """The requests of changes in their order, each once if its changes stand together."""
    found: list[str] = []
    for change in changes:
        if not found or found[-1] != change["request_id"]:
            found.append(change["request_id"])
    return found


class Event:
    """An event of a stream: its id, and the page in it."""

    def __init__(self, text: str) -> None:
        fields = dict(line.split(": ", 1) for line in text.splitlines() if not line.startswith(":"))
        # Empty for a line that says when to ask again.
        self.id = fields.get("id", "")
        self.retry = fields.get("retry")
        self.page: dict[str, Any] = json.loads(fields["data"]) if "data" in fields else {}

    @property
    def changes(self) -> list[dict[str, Any]]:
        """The changes of the event."""
        found: list[dict[str, Any]] = self.page.get("changes", [])
        return found


def events_of(body: bytes) -> list[Event]:
    """The events of a whole stream, without the line that says when to ask again."""
    texts = [text for text in body.decode().split("\n\n") if text]
    return [event for event in map(Event, texts) if event.id]


class EventStream(RawClient):
    """A client that follows changes. Its first event tells the cursor."""

    def __init__(
        self,
        port: int,
        tls: ssl.SSLContext | None = None,
        *,
        narrow: bool = False,
        last: str | None = None,
        **parameters: object,
    ) -> None:
        super().__init__(port, tls, narrow=narrow)
        headers = {"Accept": EVENTS} | ({} if last is None else {"Last-Event-ID": last})
        self.send(request("GET", changes_path(**parameters), headers))
        self._text = b""
        self.last = last

    def head(self) -> str:
        """Status line and headers."""
        return self._until(b"\r\n\r\n").decode("latin-1")

    def begin(self) -> Event:
        """The first event of the stream, which must be accepted."""
        head = self.head()
        assert head.startswith("HTTP/1.1 200"), head
        return self.next()

    def next(self) -> Event:
        """The next event; `EOFError` at the end of the stream."""
        while True:
            text, mark, rest = self._text.partition(b"\n\n")
            if mark:
                self._text = rest
                event = Event(text.decode())
                if not event.id:
                    continue
                self.last = event.id
                return event
            self._text += self._chunk()

    def __iter__(self) -> Iterator[Event]:
        """All events up to the end of the stream."""
        while True:
            try:
                yield self.next()
            except EOFError:
                return

    def _chunk(self) -> bytes:
        size = int(self._until(b"\r\n"), 16)
        data = self._exactly(size)
        self._exactly(2)
        if not size:
            raise EOFError
        return data


class FollowedApplication:
    """A stream of an application in this process, with the part of the server played by a test.

    `pump` does what a thread of the server does after the application has woken the connection.
    """

    def __init__(
        self,
        application: Application,
        last: str | None = None,
        is_stopping: Callable[[], bool] = lambda: False,
        **parameters: object,
    ) -> None:
        self.woken = threading.Event()
        headers = {"accept": EVENTS, "x-auth-token": "admin"}
        if last is not None:
            headers["last-event-id"] = last
        environ = environ_of("GET", changes_path(**parameters), b"", headers)
        environ |= {"roost.follow": lambda: self.woken.set, "roost.is_stopping": is_stopping}
        self.last = last
        self.is_over = False
        self.events: list[Event] = []
        statuses: list[str] = []
        self._pieces: Any = application(environ, lambda status, _: statuses.append(status))
        self.status = int(statuses[0].split()[0])
        self.body = b"".join(self._pieces) if self.status != 200 else b""

    def pump(self) -> bool:
        """Take the next piece; return whether the application had one, or the end."""
        self.woken.clear()
        piece = next(self._pieces, None)
        self.is_over = piece is None
        if piece:
            self.events += events_of(piece)
            self.last = self.events[-1].id
        return piece != b""

    def pump_all(self) -> None:
        """Take all that there is now."""
        while not self.is_over and self.pump():
            pass

    def follow_to(self, count: int) -> None:
        """Go on until so many changes have come."""
        self.follow_until(lambda: len(self.changes) >= count)

    def follow_until(self, holds: Callable[[], bool]) -> None:
        """Go on, as often as the application wakes the connection, until the condition holds."""
        self.pump_all()
        while not self.is_over and not holds():
            assert self.woken.wait(SECONDS_MAX)
            self.pump_all()

    def close(self) -> None:
        """Lose the connection."""
        self._pieces.close()

    @property
    def changes(self) -> list[dict[str, Any]]:
        """The changes of all events so far."""
        return [change for event in self.events for change in event.changes]
