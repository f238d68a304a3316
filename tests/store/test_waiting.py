"""Writers that wait for others do so for a bounded time, and readers do not wait with them."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from roost.model.identifiers import new_uuid
from roost.store.errors import Busy
from roost.store.write_gate import WriteGate
from support.client import ApiClient


def test_the_queue_of_writers_is_left_after_a_while(tmp_path: Path) -> None:
    path = str(tmp_path / "gate")
    first, second = WriteGate(path, 10), WriteGate(path, 0.05)
    with first.passed():
        began = time.monotonic()
        with pytest.raises(Busy), second.passed():
            pass
        assert 0.05 <= time.monotonic() - began < 5
    with second.passed():
        pass
    for gate in (first, second):
        gate.close()


def test_threads_of_one_process_queue_at_their_gate_as_well(tmp_path: Path) -> None:
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
def test_a_writer_that_is_not_let_through_is_told_so_while_readers_are_answered(
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
    """The gate of the database as another process has it; our own side is in a hurry."""
    path = str(tmp_path / "gate")
    monkeypatch.setattr(database, "gate", WriteGate(path, 0.05))
    return WriteGate(path, 10)
