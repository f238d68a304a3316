"""What a client hears of errors of the database."""

from __future__ import annotations

import sqlite3

import pytest
from sqlalchemy.exc import DataError, DBAPIError, OperationalError, ProgrammingError

from roost.store.database import Database
from support.api_client import ApiClient


@pytest.mark.parametrize(
    ("error", "status", "sentence"),
    [
        (OperationalError, 503, "The database cannot be used at the moment."),
        (DataError, 400, "The database cannot store a value of this request."),
        (ProgrammingError, 500, "This is a defect: please report it."),
    ],
)
def test_an_error_of_the_driver_is_answered_by_what_it_means(
    api: ApiClient,
    monkeypatch: pytest.MonkeyPatch,
    error: type[DBAPIError],
    status: int,
    sentence: str,
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error("SELECT secret", None, sqlite3.Error("the secret table is broken"))

    monkeypatch.setattr(Database, "read", fail)
    answer = api.get("/resource_providers/9f1b7a5c-2d2a-4b64-a3f7-6f2b4f5b0001/usages")
    assert answer.status == status
    assert sentence in answer.detail
    assert "secret" not in answer.detail
