"""The timeouts and the retries of commands."""

from __future__ import annotations

import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from roost.cli.shared import connection
from support.roost_command import roost
from support.stubs.placement_stub import HangUp, PlacementStub, Reply, Silence, closed_port_url

# The SDK deprecates its own default configuration; Python shows that in tests only.
pytestmark = pytest.mark.filterwarnings("ignore:Support for InfluxDB:PendingDeprecationWarning")

NO_PROVIDERS = Reply(body={"resource_providers": []})


@pytest.fixture
def no_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Repeats follow without delay."""
    without_delay = partial(connection.CommandRetryPolicy, sleep=lambda _: None)
    monkeypatch.setattr(connection, "CommandRetryPolicy", without_delay)


def write_cloud(monkeypatch: pytest.MonkeyPatch, url: str, **more: Any) -> None:
    """Write a clouds.yaml with the cloud `one`, whose server has this URL."""
    cloud = {"auth_type": "none", "auth": {"endpoint": url}, **more}
    Path("clouds.yaml").write_text(yaml.safe_dump({"clouds": {"one": cloud}}))
    # Without this file the SDK would read the secrets of this machine.
    Path("secure.yaml").write_text("clouds: {}")
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", "clouds.yaml")
    monkeypatch.setenv("OS_CLIENT_SECURE_FILE", "secure.yaml")


@pytest.mark.usefixtures("no_delays")
@pytest.mark.parametrize(("api_timeout", "arguments"), [(0.05, []), (60, ["--timeout", "0.1"])])
def test_a_given_timeout_takes_precedence_over_that_of_the_cloud(
    api_timeout: float, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    over = threading.Event()
    with PlacementStub(*[Silence(over)] * 4) as stub:
        write_cloud(monkeypatch, stub.url, api_timeout=api_timeout)
        outcome = roost("tree", "show", "--os-cloud", "one", *arguments)
        over.set()
    assert outcome.status == 1
    assert "timed out" in outcome.err
    assert "(4 attempts)" in outcome.err


@pytest.mark.parametrize("by", ["url", "cloud"])
def test_a_command_makes_one_attempt_to_reach_a_server(
    by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closed_port_url() as url:
        write_cloud(monkeypatch, url)
        where = ["--url", url] if by == "url" else ["--os-cloud", "one"]
        outcome = roost("tree", "show", *where)
    assert outcome.status == 1
    assert "(1 attempt)" in outcome.err


@pytest.mark.usefixtures("no_delays")
def test_a_command_repeats_a_read_without_answer() -> None:
    with PlacementStub(HangUp(), Reply(503), NO_PROVIDERS) as stub:
        outcome = roost("tree", "show", "--url", stub.url)
    assert (outcome.status, len(stub.received)) == (0, 3)
