"""How long commands wait, and what they send again."""

from __future__ import annotations

import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from roost.cli import connection
from support.commands import roost
from support.placement_stub import HangUp, PlacementStub, Reply, Silence, nobody

# The SDK deprecates its own default configuration; Python shows that to nobody but tests.
pytestmark = pytest.mark.filterwarnings("ignore:Support for InfluxDB:PendingDeprecationWarning")

NO_PROVIDERS = Reply(body={"resource_providers": []})


@pytest.fixture
def no_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is sent again is sent at once."""
    hasty = partial(connection._Impatient, sleep=lambda _: None)
    monkeypatch.setattr(connection, "_Impatient", hasty)


def write_cloud(monkeypatch: pytest.MonkeyPatch, url: str, **more: Any) -> None:
    """A clouds.yaml with the cloud `one`, whose server has this address."""
    cloud = {"auth_type": "none", "auth": {"endpoint": url}, **more}
    Path("clouds.yaml").write_text(yaml.safe_dump({"clouds": {"one": cloud}}))
    # Whatever secrets this machine has are not for tests.
    Path("secure.yaml").write_text("clouds: {}")
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", "clouds.yaml")
    monkeypatch.setenv("OS_CLIENT_SECURE_FILE", "secure.yaml")


@pytest.mark.usefixtures("no_delays")
@pytest.mark.parametrize(("said", "arguments"), [(0.05, []), (60, ["--timeout", "0.1"])])
def test_the_timeout_is_that_of_the_cloud_unless_another_is_given(
    said: float, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    over = threading.Event()
    with PlacementStub(*[Silence(over)] * 4) as stub:
        write_cloud(monkeypatch, stub.url, api_timeout=said)
        outcome = roost("tree", "show", "--os-cloud", "one", *arguments)
        over.set()
    assert outcome.status == 1
    assert "timed out" in outcome.err
    assert "(4 attempts)" in outcome.err


@pytest.mark.parametrize("by", ["url", "cloud"])
def test_a_server_that_is_down_is_not_asked_again(by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with nobody() as url:
        write_cloud(monkeypatch, url)
        where = ["--url", url] if by == "url" else ["--os-cloud", "one"]
        outcome = roost("tree", "show", *where)
    assert outcome.status == 1
    assert "(1 attempt)" in outcome.err


@pytest.mark.usefixtures("no_delays")
def test_a_question_whose_answer_is_lost_is_asked_again() -> None:
    with PlacementStub(HangUp(), Reply(503), NO_PROVIDERS) as stub:
        outcome = roost("tree", "show", "--url", stub.url)
    assert (outcome.status, len(stub.received)) == (0, 3)
