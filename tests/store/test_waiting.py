"""A writer waits for other writers for a bounded time, and readers do not wait."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from roost.model.identifiers import new_uuid
from roost.store.connections.errors import Busy
from roost.store.databases.sqlite.write_gate import WriteGate
from support.api_client import ApiClient


def test_a_writer_leaves_the_queue_after_its_time(tmp_path: Path) -> None:
    path = str(tmp_path / "gate")
    first, second = WriteGate(path, 10), WriteGate(path, 0.05)
    with first.passed(), pytest.raises(Busy), second.passed():
        pass
    with second.passed():
        pass
    for gate in (first, second):
        gate.close()


def test_a_thread_leaves_the_queue_of_its_process_after_its_time(tmp_path: Path) -> None:
    gate = WriteGate(str(tmp_path / "gate"), 0.05)
    failures: list[BaseException] = []

    def enter() -> None:
        try:
            with gate.passed():
                pass
        except Busy as error:
            failures.append(error)

    with gate.passed():
        thread = threading.Thread(target=enter)
        thread.start()
        thread.join()
    assert len(failures) == 1
    gate.close()


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_a_write_that_waits_too_long_answers_503_while_reads_succeed(
    api: ApiClient, database_gate: WriteGate
) -> None:
    with database_gate.passed():
        refused = api.post("/resource_providers", {"name": "late", "uuid": new_uuid()})
        assert refused.status == 503
        assert "Nothing was written" in refused.detail
        assert api.get("/resource_providers").status == 200
    assert api.post("/resource_providers", {"name": "late", "uuid": new_uuid()}).status == 200


@pytest.fixture
def database_gate(
    api: ApiClient, database: object, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> WriteGate:
    """The gate of the database in another process; this process waits for a short time."""
    path = str(tmp_path / "gate")
    monkeypatch.setattr(database, "write_gate", WriteGate(path, 0.05))
    return WriteGate(path, 10)
