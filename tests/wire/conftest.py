"""Live servers for tests of the wire."""

from __future__ import annotations

import shutil
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from roost.demo.load import load_demo
from roost.store.database import Database, DatabaseOptions
from roost.store.migrations.schema import prepare_schema
from roost.store.rows.vocabulary import sync_standard_names
from support.certificates import Authority
from support.run_files import made_once, run_directory
from support.servers.live_server import LiveServer, NarrowServer, Serve
from support.servers.tls_server import TlsServer

# The server ends no wait for a client before the deadline of the tests.
PATIENT = """
header_seconds = 3600
body_seconds = 3600
idle_seconds = 3600
unread_seconds = 3600
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server with one worker and much patience, for all tests of a module."""
    directory = tmp_path_factory.mktemp("server")
    with LiveServer(
        f"sqlite:///{directory}/placement.db",
        directory,
        workers=1,
        configuration=f"[roost]\n{PATIENT}\n",
    ) as live:
        yield live


@pytest.fixture(scope="session")
def _demo_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with the demo cloud. Its load takes as long as several tests."""
    return made_once(run_directory(tmp_path_factory) / "demo.db", _load_demo)


def _load_demo(path: Path) -> None:
    with closing(Database(DatabaseOptions(f"sqlite:///{path}", sqlite_synchronous=False))) as demo:
        prepare_schema(demo, upgrade=True)
        demo.write(sync_standard_names)
        load_demo(demo)


@pytest.fixture(scope="module")
def tls_server(tmp_path_factory: pytest.TempPathFactory, _demo_file: Path) -> Iterator[TlsServer]:
    """A server with one worker, the demo cloud and a certificate, for all tests of a module.

    The kernel keeps few bytes for its connections, so the server sends records in pieces.
    """
    directory = tmp_path_factory.mktemp("tls")
    shutil.copy(_demo_file, directory / "placement.db")
    authority = Authority(directory)
    issued = authority.issue("server")
    options = ("--tls-cert", str(issued.certificate), "--tls-key", str(issued.key))
    with NarrowServer(
        f"sqlite:///{directory}/placement.db",
        directory,
        workers=1,
        configuration=f"[roost]\n{PATIENT}\n",
        options=options,
        tls=authority.client_context(),
    ) as live:
        yield TlsServer(live, authority, issued)


@pytest.fixture
def serve(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Serve]:
    """Starts a server with one worker, much patience, and the options that a test gives.

    `limits`: options of `[roost]`. `options`: further options of the command. `demo`: its database
    has the demo cloud. `narrow`: the kernel keeps few bytes for its connections. `tls`: the context
    of its clients.
    """
    with ExitStack() as stack:

        def start(
            limits: str,
            *options: str,
            demo: bool = False,
            narrow: bool = False,
            workers: int = 1,
            tls: ssl.SSLContext | None = None,
        ) -> LiveServer:
            if demo:
                shutil.copy(request.getfixturevalue("_demo_file"), tmp_path / "placement.db")
            live = (NarrowServer if narrow else LiveServer)(
                f"sqlite:///{tmp_path}/placement.db",
                tmp_path,
                workers=workers,
                # Options that stand twice have their last value.
                configuration=f"[roost]\n{PATIENT}\n{limits}\n",
                options=options,
                tls=tls,
            )
            return stack.enter_context(live)

        yield start
