"""A socket that speaks TLS sends every byte once, however little the kernel takes at a time."""

from __future__ import annotations

import _ssl
import ctypes
import random
import select
import socket
import ssl
import threading
from contextlib import closing, suppress
from pathlib import Path

import pytest

from roost.server.certificates import CertificateFiles, make_context
from roost.server.tls_socket import TlsSocket
from support.certificates import Authority
from support.waiting import SECONDS_MAX


def received_first(server: TlsSocket) -> bytes:
    """The first bytes of the client, after the handshake."""
    while True:
        select.select([server], [], [], SECONDS_MAX)
        try:
            return server.recv(1 << 16)
        except BlockingIOError:
            continue


def send_all(server: TlsSocket, buffers: list[memoryview], is_full: threading.Event) -> None:
    """Send the buffers as a connection does; `is_full` as soon as the kernel takes too little."""
    waits = 0
    while buffers:
        try:
            sent = server.sendmsg(buffers)
        except BlockingIOError:
            is_full.set()
            waits += 1
            assert waits < 10_000
            select.select([], [server], [], SECONDS_MAX)
            continue
        while buffers and sent >= len(buffers[0]):
            sent -= len(buffers.pop(0))
        if sent:
            buffers[0] = buffers[0][sent:]


def test_every_byte_comes_once_over_a_narrow_connection(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    issued = authority.issue("server")
    context = make_context(CertificateFiles(str(issued.certificate), str(issued.key)))
    ours, theirs = socket.socketpair()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    ours.setblocking(False)
    theirs.settimeout(SECONDS_MAX)
    chance = random.Random(1)
    data = [chance.randbytes(size) for size in (10, 300, 70_000, 1, 200_000, 65_536, 5)]
    whole = b"".join(data)
    answer = bytearray()
    is_full = threading.Event()

    def read() -> None:
        with authority.client_context().wrap_socket(theirs, server_hostname="127.0.0.1") as client:
            client.sendall(b"ready")
            # The client reads nothing before the server has to wait.
            assert is_full.wait(SECONDS_MAX)
            while part := client.recv(1000):
                answer.extend(part)

    reader = threading.Thread(target=read)
    reader.start()
    with closing(TlsSocket(ours, context)) as server:
        assert received_first(server) == b"ready"
        send_all(server, [memoryview(one) for one in data], is_full)
        server.say_end()
    reader.join(SECONDS_MAX)
    assert bytes(answer) == whole


def change_key(client: ssl.SSLObject) -> None:
    """Let the client announce a new key, and ask for one of the server."""
    library = ctypes.CDLL(_ssl.__file__)
    # The module `ssl` has no such function. In its object, the pointer follows three words.
    inner = client._sslobj  # type: ignore[attr-defined]  # no public name
    pointer = ctypes.c_void_p.from_address(id(inner) + 3 * ctypes.sizeof(ctypes.c_void_p))
    assert library.SSL_key_update(pointer, 1) == 1
    assert library.SSL_do_handshake(pointer) == 1


def change_keys_without_reading(
    client: ssl.SSLObject, encrypted: ssl.MemoryBIO, theirs: socket.socket, server: TlsSocket
) -> None:
    for _ in range(300):
        for _ in range(100):
            change_key(client)
        theirs.sendall(encrypted.read())
        with suppress(BlockingIOError):
            server.recv(1 << 16)


def test_a_client_that_reads_no_answers_to_its_keys_is_disconnected(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    issued = authority.issue("server")
    context = make_context(CertificateFiles(str(issued.certificate), str(issued.key)))
    ours, theirs = socket.socketpair()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    ours.setblocking(False)
    received, encrypted = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = authority.client_context().wrap_bio(received, encrypted, server_hostname="127.0.0.1")
    theirs.setblocking(False)
    with theirs, closing(TlsSocket(ours, context)) as server:
        for _ in range(3):
            with suppress(ssl.SSLWantReadError):
                client.do_handshake()
            if encrypted.pending:
                theirs.sendall(encrypted.read())
                with suppress(BlockingIOError):
                    server.recv(1 << 16)
                with suppress(BlockingIOError):
                    received.write(theirs.recv(1 << 16))
        assert client.version() == "TLSv1.3"
        with pytest.raises(ConnectionError):
            change_keys_without_reading(client, encrypted, theirs, server)
