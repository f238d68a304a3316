"""The program of docs/library.md, executed."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from roost.client import Roost
from support.client.live_providers import LiveProviders
from support.code_blocks import code_blocks
from support.servers.live_server import LiveServer, ReferenceServer
from support.transports.tampering import one_server

PAGE = Path(__file__).parents[3] / "docs" / "library.md"


def test_the_program_of_the_page_does_what_the_page_says(
    server: LiveServer,
    own: LiveProviders,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("ROOST_URL", server.url)
    program, _ = code_blocks(PAGE, "python")
    # Further tests use the same server, so this one needs names of its own.
    text = program.text
    for short in ("VCPU", "MEMORY_MB", "CUSTOM_GOLD"):
        text = text.replace(short, own.custom(short.removeprefix("CUSTOM_")))
    exec(text.replace("host-", own.name("host-")), {})
    claimed, moved, nowhere, *hosts, released = capsys.readouterr().out.splitlines()
    amounts = {own.custom("MEMORY_MB"): 4096, own.custom("VCPU"): 2}
    assert (claimed, released) == (f"claimed {amounts}", f"released {amounts}")
    assert moved == "moved True"
    if isinstance(server, ReferenceServer):
        assert nowhere == "fits nowhere: the server does not say why"
    else:
        assert own.custom("VCPU") in nowhere
    assert {host.split(" has ")[1] for host in hosts} == {"14 left", "16 left"}


@one_server
def test_the_program_that_watches_tells_what_it_wrote(
    server: LiveServer,
    own: LiveProviders,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("ROOST_URL", server.url)
    _, program = code_blocks(PAGE, "python")
    exec(program.text.replace("host-3", own.name("host-3")), {})
    told = [line for line in capsys.readouterr().out.splitlines() if own.name("host-3") in line]
    assert [line.split()[0] for line in told] == ["provider_created", "inventory"]


def test_the_page_names_every_call_of_the_library() -> None:
    page = PAGE.read_text()
    calls = [name for name, _ in inspect.getmembers(Roost, callable) if not name.startswith("_")]
    assert "move_to" in calls
    assert [name for name in calls if f"`{name}(" not in page] == []
