"""The metrics of the agent, as Prometheus reads them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from roost.client.agent.host_report import MetricsFile, ReportCounts
from roost.client.errors import NotConfigured

LABELS = {"version": "1.2", "driver": 'a"b\\c', "owner": "agent"}
COUNTS = ReportCounts(
    started_at=1000.5,
    reports=7,
    failures=2,
    failures_in_a_row=1,
    changes=12,
    requests=40,
    last_report_at=2000.25,
    last_success_at=1900.0,
    last_seconds=0.75,
    providers=28,
    kept=3,
)


def samples(path: Path) -> dict[str, float]:
    return {
        sample.name + "".join(f" {name}={value}" for name, value in sample.labels.items()): (
            sample.value
        )
        for family in text_string_to_metric_families(path.read_text())
        for sample in family.samples
    }


def test_prometheus_reads_every_number(tmp_path: Path) -> None:
    path = tmp_path / "roost_agent.prom"
    MetricsFile(path, LABELS).write(COUNTS)
    assert samples(path) == {
        'roost_agent_info version=1.2 driver=a"b\\c owner=agent': 1,
        "roost_agent_start_time_seconds": 1000.5,
        "roost_agent_reports_total result=success": 5,
        "roost_agent_reports_total result=failure": 2,
        "roost_agent_consecutive_failures": 1,
        "roost_agent_last_report_timestamp_seconds": 2000.25,
        "roost_agent_last_success_timestamp_seconds": 1900,
        "roost_agent_last_report_duration_seconds": 0.75,
        "roost_agent_changes_total": 12,
        "roost_agent_requests_total": 40,
        "roost_agent_providers": 28,
        "roost_agent_kept": 3,
    }


def test_the_exporter_may_read_the_file_and_finds_no_draft(tmp_path: Path) -> None:
    path = tmp_path / "roost_agent.prom"
    before = os.umask(0o077)
    try:
        MetricsFile(path, LABELS).write(COUNTS)
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o644
    assert os.listdir(tmp_path) == ["roost_agent.prom"]


def test_the_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "roost_agent.prom"
    path.write_text("half")
    with path.open() as reader:
        MetricsFile(path, LABELS).write(COUNTS)
        assert reader.read() == "half"


def test_a_failing_write_is_logged_and_does_not_end_the_agent(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    MetricsFile(tmp_path / "missing" / "roost_agent.prom", LABELS).write(COUNTS)
    assert "cannot be written: No such file or directory" in caplog.text


@pytest.mark.parametrize("name", ["missing/roost_agent.prom", "roost_agent.txt"])
def test_a_place_that_cannot_work_is_a_wrong_configuration(tmp_path: Path, name: str) -> None:
    with pytest.raises(NotConfigured, match="The metrics file"):
        MetricsFile(tmp_path / name, LABELS).check()
