"""`roost changes`: pages, following, a restart of the server, Ctrl-C, and expired cursors."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest

from support.api_client import ApiClient
from support.change_feed import claim, make_host, now, request_id
from support.roost_command import roost
from support.servers.live_server import LiveServer
from support.stubs.placement_stub import Received, Reply, Step
from support.stubs.word_stub import WordStub

TITLES = ["AT", "KIND", "PROVIDER", "CLASSES", "ROOT", "REQUEST", "USER", "PROJECT"]
KINDS = ("usage", "inventory", "provider_created")


@pytest.fixture(scope="module")
def roost_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server of Roost alone: no other server has changes."""
    directory = tmp_path_factory.mktemp("changes")
    with LiveServer(f"sqlite:///{directory}/placement.db", directory, workers=1) as live:
        yield live


@pytest.fixture
def api(roost_server: LiveServer, monkeypatch: pytest.MonkeyPatch) -> ApiClient:
    monkeypatch.setenv("ROOST_URL", roost_server.url)
    return roost_server.client()


@contextmanager
def running(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """The command in a process of its own."""
    program = Path(sys.executable).with_name("roost")
    with subprocess.Popen(
        [str(program), "changes", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def line(stream: IO[str] | None) -> str:
    assert stream is not None
    return stream.readline()


def interrupted(process: subprocess.Popen[str]) -> str:
    """What a command says after Ctrl-C, which must end it."""
    os.kill(process.pid, signal.SIGINT)
    _, said = process.communicate()
    assert process.returncode == 130, said
    return said


def cursor_in(said: str) -> str:
    """The cursor of the command that comes next."""
    return said.rpartition("--since ")[2].split()[0]


def test_a_page_says_how_to_go_on(api: ApiClient) -> None:
    host = make_host(api, VCPU=8)
    first = roost("changes")
    assert (first.status, first.lines[1:]) == (0, [])
    assert first.err.startswith("Changes begin now.")
    written = claim(api, host)
    second = roost("changes", "--since", cursor_in(first.err))
    assert second.status == 0
    titles, row = second.lines
    assert titles.split() == TITLES
    for text in ("usage", f"host {host}", "VCPU", request_id(written), "admin"):
        assert text in row
    assert second.err.startswith("1 change.")
    third = roost("changes", "--since", cursor_in(second.err), "--json")
    assert third.json["changes"] == []
    assert third.json["more"] is False


def test_json_is_what_the_server_says(api: ApiClient) -> None:
    host = make_host(api, VCPU=8)
    since = now(api)
    claim(api, host)
    page = api.get(f"/roost/changes?since={since}").json
    assert roost("changes", "--since", since, "--json").json == page
    assert roost("changes", "--since", since, "-o", "name").lines == [f"host {host}"]
    (row,) = roost("changes", "--since", since, "-c", "kind", "--json").json
    assert row == {"kind": "usage"}


def test_conditions_and_limits(api: ApiClient) -> None:
    since = now(api)
    root = make_host(api, VCPU=8)
    child = make_host(api, root, VCPU=8)
    other = make_host(api, VCPU=8)
    for host in (root, child, other):
        claim(api, host)

    def kinds(*arguments: str) -> list[str]:
        found = roost("changes", "--since", since, "--json", *arguments)
        assert found.status == 0, found.err
        return [change["kind"] for change in found.json["changes"]]

    assert len(kinds()) == 9
    assert sorted(kinds("--provider", f"host {child}")) == sorted(KINDS)
    assert len(kinds("--root", child)) == 6
    assert kinds("--kind", "usage", "--root", root) == ["usage"] * 2
    assert len(kinds("--kind", "usage", "--kind", "inventory")) == 6
    assert len(kinds("--limit", "4")) == 4
    assert len(kinds("--limit", "0")) == 9
    short = roost("changes", "--since", since, "--limit", "4")
    assert "There are more" in short.err
    rest = roost("changes", "--since", cursor_in(short.err), "--json").json["changes"]
    assert len(rest) == 5


def test_an_unknown_provider_is_told(api: ApiClient) -> None:
    for arguments in (("--provider", "nowhere"), ("--root", "nowhere", "--follow")):
        outcome = roost("changes", *arguments)
        assert outcome.status == 1
        assert "nowhere" in outcome.err


def test_changes_are_followed_as_they_happen(api: ApiClient) -> None:
    host = make_host(api, VCPU=8)
    since = now(api)
    written = [request_id(claim(api, host))]
    with running("--follow", "--since", since, "--json") as process:
        pages = [json.loads(line(process.stdout))]
        for _ in range(2):
            written.append(request_id(claim(api, host)))
            pages.append(json.loads(line(process.stdout)))
        assert [page["changes"][0]["request_id"] for page in pages] == written
        said = interrupted(process)
    assert "Interrupted." in said
    # The next command begins where this one has ended.
    assert cursor_in(said) == pages[-1]["next"]


def test_titles_stand_above_the_first_rows_only(api: ApiClient) -> None:
    host = make_host(api, VCPU=8)
    with running("--follow", "--since", now(api), "-c", "kind", "-c", "provider") as process:
        rows = []
        for number in range(2):
            claim(api, host)
            if not number:
                assert line(process.stdout).split() == ["KIND", "PROVIDER"]
            rows.append(line(process.stdout))
        interrupted(process)
    assert [row.split(maxsplit=1) for row in rows] == [["usage", f"host {host}\n"]] * 2


def test_a_restart_of_the_server_costs_no_change(roost_server: LiveServer, api: ApiClient) -> None:
    host = make_host(api, VCPU=8)
    since = now(api)
    with running("--follow", "--since", since, "--json") as process:
        ids = [request_id(claim(api, host))]
        found: list[dict[str, Any]] = json.loads(line(process.stdout))["changes"]
        roost_server.kill()
        assert "The command goes on." in line(process.stderr)
        roost_server.start()
        ids += [request_id(claim(roost_server.client(), host)) for _ in range(3)]
        while len(found) < len(ids):
            found += json.loads(line(process.stdout))["changes"]
        # Further warnings may come before it, each as soon as the error is another one.
        said = line(process.stderr)
        while said and "The server answers again." not in said:
            said = line(process.stderr)
        assert said, "the command ended"
        interrupted(process)
    assert [change["request_id"] for change in found] == ids


class ExpiringStub(WordStub):
    """A server that has pruned all changes after its first page."""

    def __init__(self) -> None:
        super().__init__()
        self.pages = 0

    def answer(self, request: Received) -> Step:
        if not request.path.startswith("/roost/changes"):
            return super().answer(request)
        self.pages += 1
        if self.pages == 1:
            change: dict[str, object] = {
                **dict.fromkeys(("request_id", "user_id", "project_id", "provider", "root")),
                "at": "2026-11-18T12:00:00Z",
                "kind": "trait_names",
                "resource_classes": [],
            }
            return Reply(body={"changes": [change], "next": "second", "more": True})
        error = {"code": "roost.cursor_expired", "detail": "The changes are no longer known.\n"}
        return Reply(410, body={"errors": [{"status": 410, "title": "Gone", **error}]})


@pytest.mark.parametrize("arguments", [("--limit", "0"), ("--follow",)], ids=["pages", "follow"])
def test_an_expired_cursor_tells_what_is_lost(
    arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("roost.cli.shared.watching.sleep", lambda _seconds: None)
    with ExpiringStub() as stub:
        monkeypatch.setenv("ROOST_URL", stub.url)
        outcome = roost("changes", *arguments)
    assert outcome.status == 1
    assert len(outcome.lines) == 2
    assert "The cursor has expired: The changes are no longer known." in outcome.err
    assert "after 2026-11-18T12:00:00Z, the last one told here, are lost" in outcome.err
    assert "Next: roost changes --follow" in outcome.err


def test_a_server_that_leads_nowhere_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    class EndlessStub(WordStub):
        def answer(self, request: Received) -> Step:
            if not request.path.startswith("/roost/changes"):
                return super().answer(request)
            return Reply(body={"changes": [], "next": "same", "more": True})

    with EndlessStub() as stub:
        monkeypatch.setenv("ROOST_URL", stub.url)
        outcome = roost("changes", "--since", "same", "--limit", "0")
    assert outcome.status == 1
    assert "no other cursor" in outcome.err
