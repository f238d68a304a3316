"""The programs of docs/reporter.md, executed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from roost.client import Claims
from support.client.live_providers import LiveProviders
from support.code_blocks import code_blocks
from support.servers.live_server import LiveServer, ReferenceServer
from support.transports.counting import CountingTransport

PAGE = Path(__file__).parents[2] / "docs" / "reporter.md"


def test_the_declared_resources_can_be_claimed(
    server: LiveServer,
    transport: CountingTransport,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    live_providers = LiveProviders(transport)
    monkeypatch.setenv("ROOST_URL", server.url)
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path))
    host, resource_class = live_providers.name("host"), live_providers.custom("CPU")
    declare, claim = (
        # Further tests use the same server, so this one needs names of its own.
        block.text.replace("host-1", host).replace("VCPU", resource_class)
        for block in code_blocks(PAGE, "python")
    )
    exec(declare, {})
    assert f"{host}: inventory {resource_class} added (total 16)\n" in capsys.readouterr().out
    assert len(list((tmp_path / "my-agent").iterdir())) == 1
    names: dict[str, Any] = {}
    exec(claim, names)
    fits, reason, fits_not = capsys.readouterr().out.splitlines()
    assert (fits, fits_not) == ("True", "False")
    assert reason.startswith("fits nowhere: ")
    if not isinstance(server, ReferenceServer):
        assert resource_class in reason
    assert not names["place"](Claims(transport), {"resources": "CUSTOM_MISSPELT:1"}, "c")
    assert capsys.readouterr().out.startswith("a bad question: ")
    # The second declaration changes nothing.
    exec(declare, {})
    assert capsys.readouterr().out == "\n"
