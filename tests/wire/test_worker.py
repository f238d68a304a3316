"""The life of one worker process."""

from __future__ import annotations

import socket
import subprocess
import sys

from support.waiting import SECONDS_MAX

# A worker that is told to stop as soon as it listens, while a client has sent a request.
_STOPPED_AT_ONCE = """
import os, signal, socket, sys, threading

from roost.model.limits import Limits
from roost.server.listening import InheritedPlace
from roost.server.worker import run_worker


def answer(environ, start_response):
    start_response("200 OK", [("content-length", "5")])
    return [b"whole"]


def load():
    # The kernel may hand a signal to any thread, such as one of the application.
    threading.Thread(target=threading.Event().wait, daemon=True).start()
    return answer


run_worker(
    load,
    Limits(),
    [InheritedPlace(socket.socket(fileno=int(sys.argv[1])))],
    lambda: os.kill(os.getpid(), signal.SIGTERM),
)
"""


def test_a_worker_that_stops_while_it_starts_answers_the_client_that_waits() -> None:
    with socket.socket() as listening, socket.socket() as client:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        client.settimeout(SECONDS_MAX)
        client.connect(listening.getsockname())
        client.sendall(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        number = listening.fileno()
        worker = subprocess.Popen(
            [sys.executable, "-c", _STOPPED_AT_ONCE, str(number)], pass_fds=[number]
        )
        # Only the worker keeps the socket, so its end would reset the connection.
        listening.close()
        answer = client.makefile("rb").read()
        assert worker.wait(SECONDS_MAX) == 0
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert answer.endswith(b"whole")
