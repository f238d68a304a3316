"""What a command says if its server cannot be reached, refuses, or is none."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from roost.cli.shared import connection
from roost.client.transport import connecting
from support.roost_command import roost
from support.stubs.placement_stub import PlacementStub, Reply, Silence, closed_port_url

COMMANDS = [
    ["provider", "list"],
    ["tree", "show"],
    ["agent", "--driver", "file", "--option", "path=tree.yaml", "--name", "host", "--once"],
]
LONGEST_LINE = 250


@pytest.fixture(autouse=True)
def setting(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host with so many traits that a request about them is long; repeats without delay."""
    traits = ", ".join(f"HW_CPU_X86_{name}" for name in ("AVX", "AVX2", "SSE", "SSE2") * 20)
    Path("tree.yaml").write_text(f"providers: [{{name: host, traits: [{traits}]}}]")
    policy = connection.CommandRetryPolicy
    monkeypatch.setattr(policy.__bases__[0], "delay", lambda *_: None)


def refusal(command: list[str], url: str, *more: str) -> list[str]:
    outcome = roost(*command, "--url", url, *more)
    assert outcome.status != 0
    assert outcome.out == ""
    lines = outcome.err.splitlines()
    assert len(lines) <= 2
    assert all(len(line) <= LONGEST_LINE for line in lines), lines
    assert url in lines[0]
    assert "Errno" not in outcome.err
    return lines


@contextmanager
def answering(status: int, body: object) -> Iterator[str]:
    with PlacementStub(otherwise=lambda _: Reply(status, body)) as stub:
        yield stub.url


@contextmanager
def plain_text_server() -> Iterator[int]:
    """The port of a server that answers anything with a line of HTTP."""

    def serve() -> None:
        with suppress(OSError):
            while True:
                with listener.accept()[0] as accepted:
                    accepted.recv(1000)
                    accepted.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
class TestTwoLines:
    def test_a_server_that_is_down(self, command: list[str]) -> None:
        with closed_port_url() as url:
            first, second = refusal(command, url)
        assert "Connection refused. Is the server running, and is this its address" in first
        assert second == f"Next: roost doctor --url {url}"

    @pytest.mark.parametrize("token", [[], ["--token", "admin"]], ids=["bare", "token"])
    def test_a_server_that_is_not_named(
        self, command: list[str], token: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with closed_port_url() as url:
            # This machine may have a server at the default address.
            monkeypatch.setattr(connecting, "DEFAULT_URL", url)
            outcome = roost(*command, *token)
        assert outcome.status == 1
        first, second = outcome.err.splitlines()
        assert "Connection refused. No server is named. Name one: --url URL, --os-cloud" in first
        assert second == "Next: roost doctor --url http://HOST:8778"
        assert "roost serve" not in outcome.err

    def test_a_server_that_a_variable_names(
        self, command: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with closed_port_url() as url:
            monkeypatch.setenv("ROOST_URL", url)
            outcome = roost(*command)
        assert "is this its address (--url, ROOST_URL, --os-cloud, OS_CLOUD)?" in outcome.err
        assert outcome.err.splitlines()[-1] == "Next: roost doctor"

    def test_a_host_that_is_unknown(self, command: list[str]) -> None:
        first, second = refusal(command, "http://nobody.invalid:8778")
        assert "no connection to http://nobody.invalid:8778 could be made" in first
        assert second == "Next: roost doctor --url http://nobody.invalid:8778"

    def test_a_token_that_is_wrong(self, command: list[str]) -> None:
        body = {"errors": [{"status": 401, "detail": "Authentication required"}]}
        with answering(401, body) as url:
            first, second = refusal(command, url, "--token", "geheim")
        assert "see --token, ROOST_TOKEN" in first
        assert second == f"Next: roost doctor --url {url} --token TOKEN"
        assert "geheim" not in first

    def test_the_sentence_of_keystones_middleware(self, command: list[str]) -> None:
        body = {"error": {"code": 401, "title": "Unauthorized", "message": "A token is required."}}
        with answering(401, body) as url:
            first, _ = refusal(command, url)
        assert "(HTTP 401): A token is required." in first
        assert "{" not in first

    def test_a_path_that_the_server_does_not_have(self, command: list[str]) -> None:
        body = {"errors": [{"status": 404, "detail": "The resource could not be found.\n\n   "}]}
        with answering(404, body) as url:
            first, second = refusal(command, url)
        assert first.startswith(f"roost: {url}: ")
        assert second == f"Next: roost doctor --url {url}"

    def test_a_token_without_rights(self, command: list[str]) -> None:
        body = {"errors": [{"status": 403, "detail": "Policy does not allow that."}]}
        with answering(403, body) as url:
            lines = refusal(command, url)
        assert "the token lacks a role" in lines[0]

    @pytest.mark.parametrize("status", [200, 404, 502])
    def test_a_web_page(self, command: list[str], status: int) -> None:
        page = b"<html><head><title>Bad\n Gateway</title></head><body>" + b"<p>sorry" * 1000
        with answering(status, page) as url:
            lines = refusal(command, url)
        assert "a web page of a proxy or another server: Bad Gateway" in lines[0]
        assert "<" not in lines[0]

    def test_an_answer_that_takes_too_long(self, command: list[str]) -> None:
        over = threading.Event()
        with PlacementStub(otherwise=lambda _: Silence(over)) as stub:
            first, second = refusal(command, stub.url, "--timeout", "0.1")
            over.set()
        assert "no answer came from" in first
        assert "timed out" in first
        assert second == f"Next: roost doctor --url {stub.url}"

    def test_a_server_without_tls(self, command: list[str]) -> None:
        with plain_text_server() as port:
            first, second = refusal(command, f"https://127.0.0.1:{port}")
        assert "it does not speak TLS" in first
        assert "Is the server running" not in first
        assert second == f"Next: roost doctor --url http://127.0.0.1:{port}"
