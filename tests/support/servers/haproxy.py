"""haproxy before servers, with the configuration file that operators get; for `cluster/`, too."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from support.waiting import SECONDS_MAX, wait_until

SHIPPED = Path(__file__).parents[3] / "deploy" / "haproxy" / "haproxy.cfg"
HEALTH_PATH = "/readyz"
HOW_TO_INSTALL = "haproxy is not installed. On Debian: apt-get install haproxy"
# The header in which the proxy of a run tells which server has answered.
SERVER_HEADER = "x-cluster-server"
_BACKEND = "roost"


class HaproxyError(Exception):
    """haproxy is not there, does not start, or does not notice what it should."""


def find_haproxy() -> str | None:
    """The program; Debian keeps it outside the PATH of most users."""
    return shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin:/usr/local/sbin")


def configuration(port: int, servers: Mapping[str, int], stats: Path, health_path: str) -> str:
    """The shipped configuration with the addresses of a run, and with a socket for figures."""
    text = SHIPPED.read_text()
    text = re.sub(r"(?m)^    log /dev/log.*\n", f"    stats socket {stats} level admin\n", text)
    text = re.sub(r"(?m)^    (log global|option httplog|option dontlognull)\n", "", text)
    text = re.sub(r"(?m)^    bind .*$", f"    bind 127.0.0.1:{port}", text)
    text = text.replace(f"uri {HEALTH_PATH}\n", f"uri {health_path}\n")
    text = re.sub(r"(?m)^    server .*\n", "", text).rstrip() + "\n"
    text += f"    http-response set-header {SERVER_HEADER} %s\n"
    return text + "".join(f"    server {name} 127.0.0.1:{to}\n" for name, to in servers.items())


@dataclass
class Haproxy:
    """haproxy on a loopback port, between `start` and `stop`."""

    port: int
    directory: Path
    process: subprocess.Popen[bytes] | None = None

    def start(self, servers: Mapping[str, int], health_path: str = HEALTH_PATH) -> None:
        """Start haproxy before servers, given as name and port; wait until all are up."""
        program = find_haproxy()
        if program is None:
            raise HaproxyError(HOW_TO_INSTALL)
        path = self.directory / "haproxy.cfg"
        path.write_text(configuration(self.port, servers, self._stats, health_path))
        with (self.directory / "haproxy.log").open("ab") as log:
            self.process = subprocess.Popen(
                [program, "-db", "-f", str(path)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        for name in servers:
            self.wait_for(name, up=True)

    def stop(self) -> None:
        """End haproxy."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(SECONDS_MAX)
            self.process = None

    def wait_for(self, name: str, *, up: bool) -> float:
        """Wait until haproxy holds a server for up, or for down; return the moment."""
        wait_until(
            lambda: self._sees(name, up=up),
            lambda: f"haproxy does not see server {name} {'up' if up else 'down'}",
        )
        return time.monotonic()

    def _sees(self, name: str, *, up: bool) -> bool:
        if self.process is None or self.process.poll() is not None:
            said = (self.directory / "haproxy.log").read_text()[-800:].strip()
            raise HaproxyError(f"haproxy ended: {said}")
        try:
            return self._status(name).startswith("UP") is up
        except OSError:
            return False

    def set_state(self, name: str, state: str) -> None:
        """Let the operator's command `set server` change the state of a server."""
        self._command(f"set server {_BACKEND}/{name} state {state}")

    @property
    def _stats(self) -> Path:
        return self.directory / "haproxy.sock"

    def _status(self, name: str) -> str:
        rows = [line.split(",") for line in self._command("show stat").splitlines() if line]
        column = rows[0].index("status")
        for row in rows[1:]:
            if row[0] == _BACKEND and row[1] == name:
                return row[column]
        raise HaproxyError(f"haproxy knows no server {name}")

    def _command(self, command: str) -> str:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(self._stats))
            connection.sendall(f"{command}\n".encode())
            return b"".join(iter(lambda: connection.recv(65536), b"")).decode()
