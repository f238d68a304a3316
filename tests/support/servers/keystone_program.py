"""A program that serves a real Keystone on SQLite, in the virtual environment of Keystone.

    keystone_program.py template DIRECTORY        # makes a database with schema and roles
    keystone_program.py serve DIRECTORY PORT PID  # serves it until the process PID ends

A request for a token may say in `X-Test-Expiration` how many seconds the token is valid.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from wsgiref.simple_server import make_server

CONFIGURATION = """
[DEFAULT]
use_stderr = true
default_log_levels = keystone=WARN
[database]
connection = sqlite:///{directory}/keystone.db
sqlite_synchronous = false
[identity]
password_hash_rounds = 4
[fernet_tokens]
key_repository = {directory}/keys
[fernet_receipts]
key_repository = {directory}/keys
[credential]
key_repository = {directory}/keys
[cache]
enabled = true
backend = dogpile.cache.memory
"""
PASSWORD = "admin"
PARENT_SECONDS = 0.5


def prepare(directory: Path) -> Path:
    """Write the configuration and the keys."""
    from cryptography.fernet import Fernet  # noqa: PLC0415

    keys = directory / "keys"
    keys.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name in ("0", "1"):
        (keys / name).write_bytes(Fernet.generate_key())
        (keys / name).chmod(0o600)
    path = directory / "keystone.conf"
    path.write_text(CONFIGURATION.format(directory=directory))
    return path


def make_template(directory: Path) -> None:
    """Make the tables, and the administrator with the usual roles."""
    manage = [str(Path(sys.executable).with_name("keystone-manage"))]
    manage += ["--config-file", str(prepare(directory))]
    subprocess.run([*manage, "db_sync"], check=True)
    subprocess.run(
        [*manage, "bootstrap", "--bootstrap-password", PASSWORD, "--bootstrap-region-id", "one"],
        check=True,
    )


def serve(directory: Path, port: int, parent: int) -> None:
    """Serve until the parent ends."""
    from reference_program import (  # type: ignore[import-not-found] # noqa: PLC0415
        QuietHandler,
        ThreadingServer,
    )

    os.environ["OS_KEYSTONE_CONFIG_FILES"] = str(prepare(directory))
    from keystone.wsgi.api import application  # type: ignore[import-not-found] # noqa: PLC0415

    threading.Thread(target=_end_with, args=[parent], daemon=True).start()
    with make_server(
        "127.0.0.1", port, _with_expiration(application), ThreadingServer, QuietHandler
    ) as server:
        server.serve_forever()


def _end_with(parent: int) -> None:
    while Path(f"/proc/{parent}").exists():
        time.sleep(PARENT_SECONDS)
    os._exit(0)


def _with_expiration(application: Callable[..., Any]) -> Callable[..., Iterable[bytes]]:
    from keystone import conf  # type: ignore[import-not-found] # noqa: PLC0415

    # One request at a time: SQLite refuses a write during another one.
    lock = threading.Lock()

    def answer(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        seconds = environ.get("HTTP_X_TEST_EXPIRATION", "3600")
        with lock:
            conf.CONF.set_override("expiration", int(seconds), group="token")
            try:
                return list(application(environ, start_response))
            finally:
                conf.CONF.clear_override("expiration", group="token")

    return answer


if __name__ == "__main__":
    # Keystone would read the arguments as its own.
    (program, command, place, *numbers), sys.argv[1:] = sys.argv, []
    if command == "template":
        make_template(Path(place).resolve())
    else:
        serve(Path(place), *map(int, numbers))
