"""What a client is told of a write whose database session ends is what the tables have.

A session ends at each message of each kind of write: before it, with it and after it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from roost.api.application import Application
from roost.store.database import Database, DatabaseOptions
from support.api_client import Answer, ApiClient, application_client, settings_for
from support.servers.session_ends import EndingProxy, SessionEnd

pytestmark = pytest.mark.parametrize("kind", ["postgresql", "mariadb"], indirect=True)

OPEN = "may have been carried out or not"
NOTHING = "Nothing was written"
# After the commit, the read of the answer's content failed.
DONE = "The write was carried out."
MESSAGES_MAX = 200


@dataclass
class Write:
    """A write with the objects that it needs, which are there."""

    api: ApiClient
    names: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.prepare()

    def prepare(self) -> None:
        """Make the objects."""
        raise NotImplementedError

    def send(self, api: ApiClient) -> Answer:
        """Send the write."""
        raise NotImplementedError

    def uuid(self, name: str) -> str:
        return self.names.setdefault(name, str(uuid4()))

    def tables(self) -> str:
        """All that the write may change, with names instead of uuids."""
        provider, consumer = self.uuid("provider"), self.uuid("consumer")
        paths = (f"/resource_providers/{provider}/inventories", f"/allocations/{consumer}")
        text = json.dumps([self.api.get(path).json for path in paths], sort_keys=True)
        for name, uuid in self.names.items():
            text = text.replace(uuid, name)
        return text

    def make_provider(self, name: str, total: int) -> None:
        uuid = self.uuid(name)
        assert self.api.post("/resource_providers", {"name": uuid, "uuid": uuid}).status == 200
        body = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": total}}}
        assert self.api.put(f"/resource_providers/{uuid}/inventories", body).status == 200

    def claim_body(self, amount: int, generation: int | None) -> dict[str, Any]:
        return {
            "allocations": {self.uuid("provider"): {"resources": {"VCPU": amount}}},
            "project_id": "project",
            "user_id": "user",
            "consumer_generation": generation,
            "consumer_type": "INSTANCE",
        }

    def make_claim(self, amount: int) -> None:
        path = f"/allocations/{self.uuid('consumer')}"
        assert self.api.put(path, self.claim_body(amount, None)).status == 204


class Claim(Write):
    def prepare(self) -> None:
        self.make_provider("provider", 10)

    def send(self, api: ApiClient) -> Answer:
        return api.put(f"/allocations/{self.uuid('consumer')}", self.claim_body(3, None))


class Deletion(Write):
    def prepare(self) -> None:
        self.make_provider("provider", 10)
        self.make_claim(3)

    def send(self, api: ApiClient) -> Answer:
        return api.delete(f"/allocations/{self.uuid('consumer')}")


class ProviderWrite(Write):
    def prepare(self) -> None:
        self.make_provider("provider", 10)

    def send(self, api: ApiClient) -> Answer:
        body = {"resource_provider_generation": 1, "inventories": {"VCPU": {"total": 20}}}
        return api.put(f"/resource_providers/{self.uuid('provider')}/inventories", body)


class Reshape(Write):
    def prepare(self) -> None:
        self.make_provider("provider", 10)
        self.make_claim(3)

    def send(self, api: ApiClient) -> Answer:
        provider, consumer = self.uuid("provider"), self.uuid("consumer")
        inventories = {"VCPU": {"total": 30}, "MEMORY_MB": {"total": 64}}
        body = {
            "inventories": {
                provider: {"resource_provider_generation": 2, "inventories": inventories}
            },
            "allocations": {consumer: self.claim_body(5, 1)},
        }
        return api.post("/reshaper", body)


@pytest.fixture
def proxy(database: Database) -> Iterator[EndingProxy]:
    proxy = EndingProxy(database.options.url)
    with proxy:
        yield proxy


@pytest.fixture
def distant(proxy: EndingProxy, tmp_path: Path) -> Iterator[ApiClient]:
    """The API on the database behind the proxy."""
    distant = Database(DatabaseOptions(url=proxy.url))
    settings = replace(settings_for(distant, tmp_path), database=distant.options)
    yield application_client(Application(settings, distant))
    distant.close()


def compare(
    api: ApiClient,
    distant: ApiClient,
    proxy: EndingProxy,
    make: Callable[[ApiClient], Write],
    end: SessionEnd,
) -> Counter[tuple[str, bool]]:
    """How often each thing was told of a write that was done, and of one that was not."""
    whole = make(api)
    before = whole.tables()
    assert whole.send(distant).status in (200, 204)
    after = whole.tables()
    assert after != before
    found: Counter[tuple[str, bool]] = Counter()
    for message in count(1):
        assert message < MESSAGES_MAX
        write = make(api)
        assert write.tables() == before
        # After the last round, the pool may have no connection: this write opens one.
        assert distant.put("/traits/CUSTOM_OPENED").status in (201, 204)
        proxy.end_session(end, message)
        answer = write.send(distant)
        if not proxy.settle():
            return found
        tables = write.tables()
        assert tables in (before, after), "half of it was written, or twice as much"
        is_done = tables == after
        found[what_is_told(answer), is_done] += 1
        assert is_done in allowed(answer), (message, answer.status, answer.body, is_done)
    raise AssertionError


def what_is_told(answer: Answer) -> str:
    return "open" if OPEN in answer.body.decode() else str(answer.status)


def allowed(answer: Answer) -> tuple[bool, ...]:
    """Whether the write may be done, and may be undone, after this answer."""
    if answer.status in (200, 204) or DONE in answer.body.decode():
        return (True,)
    if answer.status == 503 and OPEN in answer.detail:
        assert NOTHING not in answer.detail
        return (True, False)
    assert 400 <= answer.status < 500 or NOTHING in answer.detail, answer.body
    return (False,)


@pytest.mark.slow
@pytest.mark.parametrize("end", SessionEnd)
@pytest.mark.parametrize("make", [Claim, Deletion, ProviderWrite, Reshape])
def test_what_is_told_agrees_with_the_tables(
    api: ApiClient,
    distant: ApiClient,
    proxy: EndingProxy,
    make: Callable[[ApiClient], Write],
    end: SessionEnd,
) -> None:
    found = compare(api, distant, proxy, make, end)
    assert sum(found.values()) >= 2, "no session was ended"
    if end is SessionEnd.CUT_AFTER:
        assert found["open", True] > 0, found


def test_a_claim_whose_session_the_server_ends_at_its_commit_is_not_told_as_refused(
    api: ApiClient, distant: ApiClient, proxy: EndingProxy
) -> None:
    found = compare(api, distant, proxy, Claim, SessionEnd.KILLED_AT_LAST)
    assert sum(found.values()) >= 2, "no session was ended"
