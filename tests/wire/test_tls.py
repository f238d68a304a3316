"""HTTPS: handshakes that fail or never end, kept connections, answers, renewal."""

from __future__ import annotations

import os
import shutil
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile

import pytest

from roost.model.identifiers import new_uuid
from roost.server.poller import THREADS
from support.certificates import Authority
from support.raw_client import JSON, RawClient, request
from support.requirements import note_missing
from support.servers.live_server import LiveServer, Serve, socket_count
from support.servers.tls_server import TlsServer
from support.waiting import SECONDS_MAX, wait_until

# The answer is larger than the buffers of the kernel, and is sent in pieces.
LARGE = (
    "/allocation_candidates?resources_a=SRIOV_NET_VF:1&resources_b=SRIOV_NET_VF:1"
    "&resources_c=SRIOV_NET_VF:1&group_policy=isolate"
)


def client_hello() -> bytes:
    """The first bytes of a client."""
    received, sent = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(received, sent, server_hostname="roost.example")
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return sent.read()


def assert_answers(server: TlsServer) -> None:
    """A new client gets an answer."""
    with server.client() as client:
        client.send(request("GET", "/"))
        assert client.answer().status == 200


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_links_say_https(tls_server: TlsServer, version: ssl.TLSVersion) -> None:
    context = tls_server.authority.client_context()
    context.minimum_version = context.maximum_version = version
    with RawClient(tls_server.live.port, context) as client:
        client.send(request("PUT", f"/traits/CUSTOM_{version.name.upper()}"))
        answer = client.answer()
        assert answer.headers["location"].startswith("https://roost.example/traits/")


def test_a_kept_connection_answers_requests_that_come_together_or_in_pieces(
    tls_server: TlsServer,
) -> None:
    one = request("GET", "/traits?name=in:COMPUTE_NODE")
    with tls_server.client() as client:
        client.send(one * 20)
        assert [client.answer().status for _ in range(20)] == [200] * 20
        client.send(*(one[at : at + 40] for at in range(0, len(one), 40)), pause=0.01)
        assert client.answer().json == {"traits": ["COMPUTE_NODE"]}


def test_a_large_body_comes_through(tls_server: TlsServer) -> None:
    body = b'{"name": "large-%s"' % new_uuid().encode() + b" " * 3_000_000 + b"}"
    head = request("POST", "/resource_providers", {**JSON, "Content-Length": str(len(body))})
    with tls_server.client() as client:
        client.send(head + body)
        assert client.answer().status == 200


def test_a_client_that_says_it_sends_no_more_gets_its_answer_and_the_end(
    tls_server: TlsServer,
) -> None:
    with tls_server.client() as client:
        tls = client.socket
        assert isinstance(tls, ssl.SSLSocket)
        client.send(request("GET", "/"))
        assert client.answer().status == 200
        # The client keeps the connection below TLS. Only the end that TLS knows ends the wait.
        tls.unwrap()


def test_a_request_and_the_end_in_one_packet_are_both_heard(tls_server: TlsServer) -> None:
    received, sent = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = tls_server.authority.client_context().wrap_bio(
        received, sent, server_hostname="127.0.0.1"
    )
    with socket.create_connection(("127.0.0.1", tls_server.live.port), SECONDS_MAX) as raw:
        while True:
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                raw.sendall(sent.read())
                received.write(raw.recv(1 << 16))
        tls.write(request("GET", "/"))
        with suppress(ssl.SSLWantReadError):
            tls.unwrap()
        raw.sendall(sent.read())
        # The client keeps the connection below TLS, and the server ends it at once.
        while data := raw.recv(1 << 16):
            received.write(data)
    assert tls.read(1 << 16).startswith(b"HTTP/1.1 200 OK")


def test_an_answer_that_ends_with_the_connection_has_an_end_that_tls_knows(
    tls_server: TlsServer,
) -> None:
    with tls_server.client() as client:
        # Otherwise Python takes any end for the end that TLS knows.
        client.socket.suppress_ragged_eofs = False  # type: ignore[attr-defined]
        client.send(request("GET", LARGE, version="1.0"))
        answer = client.answer()
        assert answer.status == 200
        assert answer.body.endswith(b"}}")


@pytest.mark.parametrize("method", ["GET", "DELETE", "OPTIONS"])
def test_a_request_without_tls_is_told_to_use_it(tls_server: TlsServer, method: str) -> None:
    with RawClient(tls_server.live.port) as client:
        client.send(request(method, "/traits"))
        answer = client.answer()
        assert answer.status == 400
        assert "https://" in answer.detail
        assert client.is_closed()


def test_other_bytes_end_the_connection_and_are_logged(tls_server: TlsServer) -> None:
    with RawClient(tls_server.live.port) as client:
        client.send(b"\x16\x03\x01\x00\x05hello")
        client._rest()
    wait_until(lambda: "127.0.0.1: The TLS handshake failed" in tls_server.live.log)


def test_handshakes_that_do_not_end_hold_no_threads(tls_server: TlsServer) -> None:
    hello = client_hello()
    with ExitStack() as stack:
        for sent in (b"", hello[:100], hello):
            for _ in range(THREADS + 20):
                client = stack.enter_context(RawClient(tls_server.live.port))
                client.send(sent)
        assert_answers(tls_server)


def test_clients_that_leave_during_the_handshake_leave_nothing(tls_server: TlsServer) -> None:
    before = socket_count(tls_server.live)
    hello = client_hello()
    for sent in (b"", hello[:100], hello):
        for _ in range(20):
            with RawClient(tls_server.live.port) as client:
                client.send(sent)
    wait_until(lambda: socket_count(tls_server.live) <= before)
    assert_answers(tls_server)
    assert "Traceback" not in tls_server.live.log


def test_a_handshake_has_the_time_of_the_headers(serve: Serve, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    issued = authority.issue("server")
    server = serve(
        f"header_seconds = 1\ntls_cert = {issued.certificate}\ntls_key = {issued.key}",
        tls=authority.client_context(),
    )
    with RawClient(server.port) as silent, RawClient(server.port) as slow:
        slow.send(client_hello()[:100])
        assert silent.is_closed()
        assert slow.is_closed()
    wait_until(lambda: "[roost]header_seconds" in server.log)


def test_a_slow_reader_gets_the_whole_of_a_large_answer(tls_server: TlsServer) -> None:
    port, tls = tls_server.live.port, tls_server.live.tls
    with tls_server.client() as fast, RawClient(port, tls, narrow=True) as slow:
        fast.send(request("GET", LARGE))
        whole = fast.answer()
        assert whole.headers["transfer-encoding"] == "chunked"
        slow.send(request("GET", LARGE), request("GET", "/"))
        assert len(slow.answer().body) == len(whole.body)
        assert slow.answer().status == 200


def test_clients_that_do_not_read_are_disconnected(serve: Serve, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    issued = authority.issue("server")
    server = serve(
        f"unread_seconds = 1\ntls_cert = {issued.certificate}\ntls_key = {issued.key}",
        demo=True,
        narrow=True,
        tls=authority.client_context(),
    )
    before = socket_count(server)
    with ExitStack() as stack:
        for _ in range(10):
            client = stack.enter_context(RawClient(server.port, server.tls, narrow=True))
            client.send(request("GET", LARGE))
        wait_until(lambda: socket_count(server) <= before)
    assert "[roost]unread_seconds" in server.log


@contextmanager
def openssl(server: TlsServer, *options: str) -> Iterator[Callable[[str, str], None]]:
    """OpenSSL's own client: types a line, and waits for what the client then shows."""
    program = shutil.which("openssl")
    if program is None:
        note_missing("openssl", "no program `openssl` on this machine")
        pytest.skip("the program openssl is not installed")
    command = [program, "s_client", "-connect", f"127.0.0.1:{server.live.port}", "-crlf", *options]
    with (
        TemporaryFile("w+") as shown,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=shown, stderr=shown, text=True
        ) as process,
    ):

        def type_line(line: str, awaited: str) -> None:
            assert process.stdin is not None
            process.stdin.write(f"{line}\n")
            process.stdin.flush()
            wait_until(lambda: awaited in said(), said)

        def said() -> str:
            return os.pread(shown.fileno(), 1 << 20, 0).decode(errors="replace")

        yield type_line
        process.kill()


def test_a_client_cannot_negotiate_anew(tls_server: TlsServer) -> None:
    # The client takes the letter R in a line for a command.
    with openssl(tls_server, "-tls1_2") as type_line:
        type_line("R", "no renegotiation")


def test_a_client_may_change_its_key(tls_server: TlsServer) -> None:
    # The client takes the letter K in a line for a command.
    with openssl(tls_server, "-tls1_3") as type_line:
        type_line("K", "KEYUPDATE")
        type_line("GET / HTTP/1.1\nHost: x\n", "HTTP/1.1 200")


def test_with_an_authority_of_clients_only_its_clients_are_served(
    serve: Serve, tmp_path: Path
) -> None:
    authority, stranger = Authority(tmp_path), Authority(tmp_path, "stranger")
    issued, own, foreign = (
        authority.issue("server"),
        authority.issue("client"),
        stranger.issue("foreign"),
    )
    server = serve(
        "",
        *("--tls-cert", str(issued.certificate), "--tls-key", str(issued.key)),
        *("--tls-client-ca", str(authority.file)),
        tls=authority.client_context(own),
    )
    assert server.client().get("/resource_providers").status == 200
    for context in (authority.client_context(), authority.client_context(foreign)):
        # With TLS 1.3 a client hears of the refusal after its own part of the handshake.
        with pytest.raises((ssl.SSLError, ConnectionError)):
            ask(server, context)
    wait_until(lambda: server.log.count("The TLS handshake failed") == 2)


def ask(server: LiveServer, context: ssl.SSLContext) -> None:
    with RawClient(server.port, context) as client:
        client.send(request("GET", "/"))
        client.answer()


def served_certificate(server: LiveServer) -> bytes | None:
    with RawClient(server.port, server.tls) as client:
        assert isinstance(client.socket, ssl.SSLSocket)
        return client.socket.getpeercert(binary_form=True)


def test_a_renewed_certificate_needs_no_restart(serve: Serve, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    issued = authority.issue("server")
    server = serve(
        "",
        *("--tls-cert", str(issued.certificate), "--tls-key", str(issued.key)),
        tls=authority.client_context(),
    )
    first = served_certificate(server)
    with RawClient(server.port, server.tls) as kept:
        kept.send(request("GET", "/"))
        assert kept.answer().status == 200
        issued.certificate.write_text("half of a certificate")
        wait_until(lambda: served_certificate(server) == first and "keeps its old" in server.log)
        authority.issue("server")
        wait_until(lambda: served_certificate(server) != first)
        kept.send(request("GET", "/"))
        assert kept.answer().status == 200
