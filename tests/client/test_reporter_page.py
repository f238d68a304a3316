"""The page about the reporter, executed: its programs do what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.code_blocks import code_blocks
from support.counting import CountingTransport
from support.live_server import LiveServer
from support.remote_world import RemoteWorld

PAGE = Path(__file__).parents[2] / "docs" / "reporter.md"


def test_what_is_declared_can_be_claimed(
    server: LiveServer,
    transport: CountingTransport,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    world = RemoteWorld(transport)
    monkeypatch.setenv("ROOST_URL", server.url)
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path))
    host, resource_class = world.name("host"), world.custom("CPU")
    declare, claim = (
        # Names of its own: the server has more hosts, of which others have plans.
        block.text.replace("host-1", host).replace("VCPU", resource_class)
        for block in code_blocks(PAGE, "python")
    )
    exec(declare, {})
    assert f"{host}: inventory {resource_class} added (total 16)\n" in capsys.readouterr().out
    assert len(list((tmp_path / "my-agent").iterdir())) == 1
    exec(claim, {})
    assert capsys.readouterr().out == "True\n"
    # Who knows what he declared has nothing to do the second time.
    exec(declare, {})
    assert capsys.readouterr().out == "\n"
