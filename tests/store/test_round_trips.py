"""How many round trips a claim needs: several statements share one."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias
from uuid import uuid4

import pytest
from sqlalchemy import event

from roost.store.database import Database
from support.api_client import Answer, ApiClient

# The round trips of one request. The last one includes COMMIT. These limits may fall, not rise.
FIRST_CLAIM = 2
FIRST_CLAIM_OF_A_NEW_OWNER = FIRST_CLAIM + 1  # project, user and type together
REPLACEMENT = 3
EMPTYING = 3
DELETION = 3
INVENTORIES = 5
PROVIDER_DELETION = 4
DECLARATION = 14


@contextmanager
def counted(database: Database, caplog: pytest.LogCaptureFixture) -> Iterator[list[str]]:
    """The batches and the single statements in the block."""
    sent: list[str] = []

    def note(*arguments: Any) -> None:
        statement: str = arguments[2]
        if not statement.startswith("BEGIN"):
            sent.append(statement)

    event.listen(database.engine, "before_cursor_execute", note)
    try:
        with caplog.at_level(logging.DEBUG, "roost.store.transaction"):
            yield sent
        sent += [
            record.getMessage()
            for record in caplog.records
            if record.name == "roost.store.transaction"
        ]
    finally:
        event.remove(database.engine, "before_cursor_execute", note)
        caplog.clear()


RoundTrips: TypeAlias = Callable[[Callable[[], Answer]], list[str]]


@pytest.fixture
def round_trips(database: Database, caplog: pytest.LogCaptureFixture) -> RoundTrips:
    """The round trips of a request that succeeds."""

    def of(send: Callable[[], Answer]) -> list[str]:
        with counted(database, caplog) as sent:
            answer = send()
        assert answer.status == 204, answer.body
        return sent

    return of


def make_provider(api: ApiClient) -> str:
    uuid = str(uuid4())
    assert api.post("/resource_providers", {"name": uuid, "uuid": uuid}).status == 200
    records = {"VCPU": {"total": 1000}, "MEMORY_MB": {"total": 1000}}
    body = {"resource_provider_generation": 0, "inventories": records}
    assert api.put(f"/resource_providers/{uuid}/inventories", body).status == 200
    return uuid


def claim(providers: list[str], generation: int | None = None, **members: Any) -> dict[str, Any]:
    resources = {"VCPU": 1, "MEMORY_MB": 2}
    return {
        "allocations": {uuid: {"resources": resources} for uuid in providers},
        "project_id": "a project",
        "user_id": "a user",
        "consumer_generation": generation,
        "consumer_type": "INSTANCE",
    } | members


@pytest.fixture
def provider(api: ApiClient) -> str:
    """A provider. Project, user and consumer type of the claims are already stored."""
    uuid = make_provider(api)
    assert api.put(f"/allocations/{uuid4()}", claim([uuid])).status == 204
    return uuid


@pytest.fixture
def holder(api: ApiClient, provider: str) -> str:
    """A consumer with an allocation from the provider."""
    uuid = str(uuid4())
    assert api.put(f"/allocations/{uuid}", claim([provider])).status == 204
    return uuid


class TestOneConsumer:
    def test_a_first_claim_needs_few_round_trips(
        self, api: ApiClient, round_trips: RoundTrips, provider: str
    ) -> None:
        path = f"/allocations/{uuid4()}"
        found = round_trips(lambda: api.put(path, claim([provider])))
        assert len(found) <= FIRST_CLAIM, found

    def test_a_first_claim_of_a_new_owner_needs_few_round_trips(
        self, api: ApiClient, round_trips: RoundTrips, provider: str
    ) -> None:
        body = claim([provider], project_id="new", user_id="new", consumer_type="NEW")
        found = round_trips(lambda: api.put(f"/allocations/{uuid4()}", body))
        assert len(found) <= FIRST_CLAIM_OF_A_NEW_OWNER, found

    def test_a_replacement_needs_few_round_trips(
        self, api: ApiClient, round_trips: RoundTrips, provider: str, holder: str
    ) -> None:
        body = claim([provider], generation=1)
        found = round_trips(lambda: api.put(f"/allocations/{holder}", body))
        assert len(found) <= REPLACEMENT, found

    def test_a_replacement_by_another_provider_needs_no_more(
        self, api: ApiClient, round_trips: RoundTrips, holder: str
    ) -> None:
        body = claim([make_provider(api)], generation=1)
        found = round_trips(lambda: api.put(f"/allocations/{holder}", body))
        assert len(found) <= REPLACEMENT, found

    def test_a_replacement_with_another_type_needs_no_more(
        self, api: ApiClient, round_trips: RoundTrips, provider: str, holder: str
    ) -> None:
        known = claim([provider], consumer_type="MIGRATION")
        assert api.put(f"/allocations/{uuid4()}", known).status == 204
        body = claim([provider], generation=1, consumer_type="MIGRATION")
        found = round_trips(lambda: api.put(f"/allocations/{holder}", body))
        assert len(found) <= REPLACEMENT, found

    def test_an_emptying_needs_few_round_trips(
        self, api: ApiClient, round_trips: RoundTrips, holder: str
    ) -> None:
        body = claim([], generation=1)
        found = round_trips(lambda: api.put(f"/allocations/{holder}", body))
        assert len(found) <= EMPTYING, found

    def test_a_deletion_needs_few_round_trips(
        self, api: ApiClient, round_trips: RoundTrips, holder: str
    ) -> None:
        found = round_trips(lambda: api.delete(f"/allocations/{holder}"))
        assert len(found) <= DELETION, found

    def test_a_claim_of_many_providers_needs_no_more(
        self, api: ApiClient, round_trips: RoundTrips, provider: str
    ) -> None:
        body = claim([provider, *(make_provider(api) for _ in range(9))])
        found = round_trips(lambda: api.put(f"/allocations/{uuid4()}", body))
        assert len(found) <= FIRST_CLAIM, found


class TestSeveralConsumers:
    @pytest.mark.parametrize("consumers", [1, 2, 60])
    def test_many_first_claims_need_no_more_than_one(
        self, api: ApiClient, round_trips: RoundTrips, provider: str, consumers: int
    ) -> None:
        body = {str(uuid4()): claim([provider]) for _ in range(consumers)}
        found = round_trips(lambda: api.post("/allocations", body))
        assert len(found) <= FIRST_CLAIM, found

    @pytest.mark.parametrize("providers", [1, 12])
    def test_claims_of_many_providers_need_no_more_than_one(
        self, api: ApiClient, round_trips: RoundTrips, provider: str, providers: int
    ) -> None:
        made = [provider, *(make_provider(api) for _ in range(providers - 1))]
        body = {str(uuid4()): claim(made) for _ in range(3)}
        found = round_trips(lambda: api.post("/allocations", body))
        assert len(found) <= FIRST_CLAIM, found

    @pytest.mark.parametrize("consumers", [1, 20])
    def test_many_replacements_need_no_more_than_one(
        self, api: ApiClient, round_trips: RoundTrips, provider: str, consumers: int
    ) -> None:
        uuids = [str(uuid4()) for _ in range(consumers)]
        first = {uuid: claim([provider]) for uuid in uuids}
        assert api.post("/allocations", first).status == 204
        body = {uuid: claim([provider], generation=1) for uuid in uuids}
        found = round_trips(lambda: api.post("/allocations", body))
        assert len(found) <= REPLACEMENT, found

    @pytest.mark.parametrize("consumers", [1, 20])
    def test_many_emptyings_need_no_more_than_one(
        self, api: ApiClient, round_trips: RoundTrips, provider: str, consumers: int
    ) -> None:
        uuids = [str(uuid4()) for _ in range(consumers)]
        first = {uuid: claim([provider]) for uuid in uuids}
        assert api.post("/allocations", first).status == 204
        body = {uuid: claim([], generation=1) for uuid in uuids}
        found = round_trips(lambda: api.post("/allocations", body))
        assert len(found) <= EMPTYING, found

    def test_a_move_to_a_new_consumer_needs_no_more_than_a_replacement(
        self, api: ApiClient, round_trips: RoundTrips, provider: str, holder: str
    ) -> None:
        # Nova moves the allocations of a server to its migration record in this way.
        body = {str(uuid4()): claim([provider]), holder: claim([], generation=1)}
        found = round_trips(lambda: api.post("/allocations", body))
        assert len(found) <= REPLACEMENT, found


class TestProviders:
    """Writes of other things than claims send their last statements together with COMMIT, too."""

    def test_a_change_of_inventories_needs_few_round_trips(
        self, api: ApiClient, database: Database, caplog: pytest.LogCaptureFixture
    ) -> None:
        uuid = make_provider(api)
        body = {"resource_provider_generation": 1, "inventories": {"VCPU": {"total": 5}}}
        with counted(database, caplog) as sent:
            assert api.put(f"/resource_providers/{uuid}/inventories", body).status == 200
        assert len(sent) <= INVENTORIES, sent
        assert count_writes(sent) == [4]

    def test_the_deletion_of_a_provider_needs_few_round_trips(
        self, api: ApiClient, round_trips: RoundTrips
    ) -> None:
        uuid = make_provider(api)
        found = round_trips(lambda: api.delete(f"/resource_providers/{uuid}"))
        assert len(found) <= PROVIDER_DELETION, found
        assert count_writes(found) == [7]


def count_writes(sent: list[str]) -> list[int]:
    """How many statements of each round trip write, for those that write."""
    verbs = ("INSERT", "UPDATE", "DELETE")
    counts = (
        sum(text.startswith(verbs) for text in trip.removeprefix("batch: ").split("; "))
        for trip in sent
    )
    return [count for count in counts if count]


def test_a_declared_tree_needs_few_round_trips_whatever_its_size(
    api: ApiClient, database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    """A batch of the log counts as one; it has at most 64 statements of many rows each."""

    def declared(name: str, children: int, total: int) -> int:
        below = [
            {"name": f"{name}_{number}", "inventories": {"VCPU": total}, "traits": ["CUSTOM_A"]}
            for number in range(children)
        ]
        with counted(database, caplog) as sent:
            tree = {"providers": [{"name": name, "children": below}]}
            assert api.put(f"/roost/trees/{name}?owner=me", tree).status == 200
        return len(sent)

    declared("names", 1, 1)
    for total in (1, 2):
        few, many = declared("few", 2, total), declared("many", 200, total)
        assert many == few <= DECLARATION
