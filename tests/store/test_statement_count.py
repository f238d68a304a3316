"""How many statements a claim sends: each statement is a round trip."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import event

from roost.store.database import Database
from support.api_client import Answer, ApiClient

# The statements of one request, without BEGIN and COMMIT. These limits may fall, not rise.
FIRST_CLAIM = 8
FIRST_CLAIM_OF_A_NEW_OWNER = FIRST_CLAIM + 2 * 3  # a SELECT and an INSERT for project, user, type
REPLACEMENT = 10
REPLACEMENT_WITH_ANOTHER_TYPE = REPLACEMENT + 1
EMPTYING = 7
DELETION = 5


@contextmanager
def counted(database: Database) -> Iterator[list[str]]:
    """The statements in the block; one statement for many rows counts once."""
    statements: list[str] = []

    def note(*arguments: Any) -> None:
        statement: str = arguments[2]
        if not statement.startswith("BEGIN"):
            statements.append(statement)

    event.listen(database.engine, "before_cursor_execute", note)
    try:
        yield statements
    finally:
        event.remove(database.engine, "before_cursor_execute", note)


def statements_of(database: Database, send: Callable[[], Answer]) -> list[str]:
    """The statements of a request that succeeds."""
    with counted(database) as statements:
        answer = send()
    assert answer.status == 204, answer.body
    return statements


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
    def test_a_first_claim_needs_few_statements(
        self, api: ApiClient, database: Database, provider: str
    ) -> None:
        path = f"/allocations/{uuid4()}"
        found = statements_of(database, lambda: api.put(path, claim([provider])))
        assert len(found) <= FIRST_CLAIM, found

    def test_a_first_claim_of_a_new_owner_needs_few_statements(
        self, api: ApiClient, database: Database, provider: str
    ) -> None:
        body = claim([provider], project_id="new", user_id="new", consumer_type="NEW")
        found = statements_of(database, lambda: api.put(f"/allocations/{uuid4()}", body))
        assert len(found) <= FIRST_CLAIM_OF_A_NEW_OWNER, found

    def test_a_replacement_needs_few_statements(
        self, api: ApiClient, database: Database, provider: str, holder: str
    ) -> None:
        body = claim([provider], generation=1)
        found = statements_of(database, lambda: api.put(f"/allocations/{holder}", body))
        assert len(found) <= REPLACEMENT, found

    def test_a_replacement_by_another_provider_needs_no_more(
        self, api: ApiClient, database: Database, holder: str
    ) -> None:
        body = claim([make_provider(api)], generation=1)
        found = statements_of(database, lambda: api.put(f"/allocations/{holder}", body))
        assert len(found) <= REPLACEMENT, found

    def test_a_replacement_with_another_type_needs_one_more(
        self, api: ApiClient, database: Database, provider: str, holder: str
    ) -> None:
        known = claim([provider], consumer_type="MIGRATION")
        assert api.put(f"/allocations/{uuid4()}", known).status == 204
        body = claim([provider], generation=1, consumer_type="MIGRATION")
        found = statements_of(database, lambda: api.put(f"/allocations/{holder}", body))
        assert len(found) <= REPLACEMENT_WITH_ANOTHER_TYPE, found

    def test_an_emptying_needs_few_statements(
        self, api: ApiClient, database: Database, holder: str
    ) -> None:
        body = claim([], generation=1)
        found = statements_of(database, lambda: api.put(f"/allocations/{holder}", body))
        assert len(found) <= EMPTYING, found

    def test_a_deletion_needs_few_statements(
        self, api: ApiClient, database: Database, holder: str
    ) -> None:
        found = statements_of(database, lambda: api.delete(f"/allocations/{holder}"))
        assert len(found) <= DELETION, found

    def test_a_claim_of_many_providers_needs_no_more(
        self, api: ApiClient, database: Database, provider: str
    ) -> None:
        body = claim([provider, *(make_provider(api) for _ in range(9))])
        found = statements_of(database, lambda: api.put(f"/allocations/{uuid4()}", body))
        assert len(found) <= FIRST_CLAIM, found


class TestSeveralConsumers:
    @pytest.mark.parametrize("consumers", [1, 2, 60])
    def test_many_first_claims_need_no_more_than_one(
        self, api: ApiClient, database: Database, provider: str, consumers: int
    ) -> None:
        body = {str(uuid4()): claim([provider]) for _ in range(consumers)}
        found = statements_of(database, lambda: api.post("/allocations", body))
        assert len(found) <= FIRST_CLAIM, found

    @pytest.mark.parametrize("providers", [1, 12])
    def test_claims_of_many_providers_need_no_more_than_one(
        self, api: ApiClient, database: Database, provider: str, providers: int
    ) -> None:
        made = [provider, *(make_provider(api) for _ in range(providers - 1))]
        body = {str(uuid4()): claim(made) for _ in range(3)}
        found = statements_of(database, lambda: api.post("/allocations", body))
        assert len(found) <= FIRST_CLAIM, found

    @pytest.mark.parametrize("consumers", [1, 20])
    def test_many_replacements_need_no_more_than_one(
        self, api: ApiClient, database: Database, provider: str, consumers: int
    ) -> None:
        uuids = [str(uuid4()) for _ in range(consumers)]
        first = {uuid: claim([provider]) for uuid in uuids}
        assert api.post("/allocations", first).status == 204
        body = {uuid: claim([provider], generation=1) for uuid in uuids}
        found = statements_of(database, lambda: api.post("/allocations", body))
        assert len(found) <= REPLACEMENT, found

    @pytest.mark.parametrize("consumers", [1, 20])
    def test_many_emptyings_need_no_more_than_one(
        self, api: ApiClient, database: Database, provider: str, consumers: int
    ) -> None:
        uuids = [str(uuid4()) for _ in range(consumers)]
        first = {uuid: claim([provider]) for uuid in uuids}
        assert api.post("/allocations", first).status == 204
        body = {uuid: claim([], generation=1) for uuid in uuids}
        found = statements_of(database, lambda: api.post("/allocations", body))
        assert len(found) <= EMPTYING, found

    def test_a_move_to_a_new_consumer_needs_one_more_than_a_replacement(
        self, api: ApiClient, database: Database, provider: str, holder: str
    ) -> None:
        # Nova moves the allocations of a server to its migration record in this way.
        body = {str(uuid4()): claim([provider]), holder: claim([], generation=1)}
        found = statements_of(database, lambda: api.post("/allocations", body))
        assert len(found) <= REPLACEMENT + 1, found
