"""A request beyond a limit writes a line into the log, and many of them do not fill a disk."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from roost.api.http import failures
from roost.configuration import limit_log
from roost.configuration.limit_log import LINES_MAX, PERIOD_SECONDS, LimitLog
from roost.model.identifiers import new_uuid
from roost.store.database import Database
from support.api_client import ApiClient, limited_client

UUID = new_uuid()
on_sqlite = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)


@pytest.fixture(autouse=True)
def _new_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """A log without earlier lines: other tests of this process meet limits, too."""
    monkeypatch.setattr(failures, "LIMIT_LOG", LimitLog())


def limited(database: Database, directory: Path) -> ApiClient:
    return limited_client(
        database,
        directory,
        max_body_bytes=2000,
        max_query_parameters=20,
        max_request_groups=2,
        max_provider_members=2,
        max_allocations=2,
    )


@dataclass(frozen=True)
class Case:
    """A request beyond a limit."""

    path: str
    status: int
    limit: str
    body: object = None


GROUPS = "resources=VCPU:1&resources1=VCPU:1&resources2=VCPU:1"
CASES = (
    Case("/traits?" + "&".join(f"a{n}=1" for n in range(21)), 400, "max_query_parameters"),
    Case("/resource_providers?" + ";" * 20, 400, "max_query_parameters"),
    Case("/allocation_candidates?limit=1" + "&limit=1" * 20, 400, "max_query_parameters"),
    Case(f"/allocation_candidates?{GROUPS}", 400, "max_request_groups"),
    Case("/resource_providers", 413, "max_body_bytes", {"name": "x" * 3000}),
)


@on_sqlite
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.limit)
def test_the_line_names_the_limit_and_the_request(
    database: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture, case: Case
) -> None:
    api = limited(database, tmp_path)
    answer = api.get(case.path) if case.body is None else api.post(case.path, case.body)
    assert answer.status == case.status
    assert f"[roost]{case.limit}" in answer.detail
    (line,) = [record for record in caplog.records if record.name == limit_log.__name__]
    assert f"[roost]{case.limit}" in line.getMessage()
    assert case.path[:60] in line.getMessage()


@on_sqlite
def test_a_query_of_the_largest_size_is_answered(database: Database, tmp_path: Path) -> None:
    query = "&".join(["resources=VCPU:1"] * 20)
    assert limited(database, tmp_path).get(f"/allocation_candidates?{query}").status == 200


@on_sqlite
def test_repeated_parameters_and_members_are_logged(
    database: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    api = limited(database, tmp_path)
    api.post("/resource_providers", {"name": "host", "uuid": UUID})
    traits = {"resource_provider_generation": 0, "traits": ["A", "B", "C"]}
    assert api.put(f"/resource_providers/{UUID}/traits", traits).status == 400
    many = limited_client(database, tmp_path)
    query = "resources=VCPU:1" + "&required=HW_CPU_X86_VMX" * 201
    assert many.get(f"/allocation_candidates?{query}").status == 400
    assert "[roost]max_provider_members" in caplog.text
    assert "'required' is given 201 times" in caplog.text


def test_each_limit_has_some_lines_in_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    limits = LimitLog(lambda: now)
    for _ in range(1000):
        limits.warn("one", "too much", "192.0.2.1")
        limits.warn("another", "too many", "192.0.2.2")
    assert len(caplog.records) == 2 * LINES_MAX
    now = PERIOD_SECONDS
    caplog.clear()
    limits.warn("one", "too much", "192.0.2.1")
    assert caplog.messages == [
        f"192.0.2.1: too much ({1000 - LINES_MAX} lines like this were left out.)"
    ]


def test_a_line_stays_one_line_of_bounded_length(caplog: pytest.LogCaptureFixture) -> None:
    LimitLog().warn("one", "a\nb" * 10_000, "\x1b[0m")
    (line,) = caplog.messages
    assert line.isprintable()
    assert len(line) < 2500
