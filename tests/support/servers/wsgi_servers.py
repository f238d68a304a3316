"""Roost behind uwsgi, gunicorn and Apache, with the recipes of deploy/wsgi."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO, ClassVar

import pytest

from support.requirements import note_missing
from support.servers.live_server import LiveServer, Process, start_program
from support.waiting import SECONDS_MAX

RECIPES = Path(__file__).parents[3] / "deploy" / "wsgi"
PREFIX = "/placement"
_NOBODY = 65534
_MODULES = Path("/usr/lib/apache2/modules")
# What Apache's main file has on Debian.
_APACHE_MAIN = """\
ServerRoot {directory}
ServerName localhost
PidFile {directory}/apache.pid
ErrorLog {directory}/server.log
DefaultRuntimeDir {directory}
LoadModule mpm_event_module {modules}/mod_mpm_event.so
LoadModule authz_core_module {modules}/mod_authz_core.so
LoadModule alias_module {modules}/mod_alias.so
LoadModule wsgi_module {modules}/mod_wsgi.so
WSGISocketPrefix {directory}/wsgi
"""


class WsgiServer(LiveServer):
    """A server of two processes that runs its recipe, with the paths and the port of the test."""

    recipe: ClassVar[str]

    def __init__(self, directory: Path) -> None:
        super().__init__(f"sqlite:///{directory}/x.db", directory)
        self.directory = directory
        self.configure("")

    def configure(self, text: str) -> None:
        """Write placement.conf, with these lines behind the usual ones."""
        (self.directory / "placement.conf").write_text(
            "[api]\nauth_strategy = noauth2\n[placement_database]\n"
            f"connection = {self._database_url}\n{text}"
        )

    def reload(self) -> None:
        """Do what docs/wsgi.md says."""
        raise NotImplementedError

    def answering_ids(self) -> set[int]:
        """The processes that answer requests."""
        return set(self.worker_ids())

    def has_settled(self) -> bool:
        """Whether nothing of the reload is left to do."""
        return True

    def _written(self, replacements: dict[str, str]) -> Path:
        """The recipe in the directory of the test. Each text to replace must be there."""
        text = (RECIPES / self.recipe).read_text()
        for before, after in {"127.0.0.1:8778": f"127.0.0.1:{self.port}", **replacements}.items():
            assert before in text, before
            text = text.replace(before, after)
        path = self.directory / self.recipe
        path.write_text(text)
        return path

    def _environment(self) -> dict[str, str]:
        return {"OS_PLACEMENT_CONFIG_DIR": str(self.directory)}

    def stop(self) -> int:
        """Send SIGTERM, and wait for the end of the server."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        # uwsgi waits for the mercy of its recipe if a process has not finished loading.
        return self.process.wait(SECONDS_MAX)


class UwsgiServer(WsgiServer):
    """Roost behind uwsgi."""

    recipe = "uwsgi.ini"

    def _start_process(self, log: IO[bytes], environment: dict[str, str]) -> Process:
        (self.directory / "reload").touch()
        file = self._written(
            {"/run/roost/reload": f"{self.directory}/reload", "processes = 4": "processes = 2"}
        )
        return start_program([_program("uwsgi"), "--ini", str(file)], log, environment)

    def reload(self) -> None:
        """Touch the file that the recipe names."""
        (self.directory / "reload").touch()

    def has_settled(self) -> bool:
        """uwsgi hears no SIGTERM before its chain of reloads is complete."""
        return "chain reloading complete" in self.log


class GunicornServer(WsgiServer):
    """Roost behind gunicorn."""

    recipe = "gunicorn.conf.py"

    def _start_process(self, log: IO[bytes], environment: dict[str, str]) -> Process:
        file = self._written({"workers = 4": "workers = 2"})
        return start_program([_program("gunicorn"), "--config", str(file)], log, environment)

    def reload(self) -> None:
        """Send SIGHUP to the first process."""
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGHUP)


class ApacheServer(WsgiServer):
    """Roost behind Apache's mod_wsgi, with Debian's packages."""

    recipe = "apache.conf"

    def _start_process(self, log: IO[bytes], environment: dict[str, str]) -> Process:
        script = (RECIPES / "placement.wsgi").read_text()
        (self.directory / "placement.wsgi").write_text(
            script.replace("/etc/placement", str(self.directory))
        )
        file = self._written(
            {
                "/etc/placement": str(self.directory),
                "processes=4": "processes=2",
                "python-home=/opt/roost": f"python-home={sys.prefix}",
                "user=placement group=placement ": "",
                "home=/var/lib/roost": f"home={self.directory}",
            }
        )
        main = self.directory / "apache2.conf"
        main.write_text(
            _APACHE_MAIN.format(directory=self.directory, modules=_MODULES) + file.read_text()
        )
        if os.geteuid() == 0:
            for path in (self.directory, *self.directory.iterdir()):
                os.chown(path, _NOBODY, _NOBODY)
        command = [*_unprivileged(), _apache(), "-D", "FOREGROUND", "-f", str(main)]
        return start_program(command, log, environment)

    def answering_ids(self) -> set[int]:
        """The processes of the daemon, without those of Apache itself."""
        return {
            id_
            for id_ in self.worker_ids()
            if b"wsgi:placement" in Path(f"/proc/{id_}/cmdline").read_bytes()
        }

    def reload(self) -> None:
        """Touch the script."""
        (self.directory / "placement.wsgi").touch()


SERVERS: tuple[type[WsgiServer], ...] = (UwsgiServer, GunicornServer, ApacheServer)


def require(server: type[WsgiServer]) -> None:
    """Skip the test where the machine lacks the server; `make test` installs all but Apache."""
    if server is ApacheServer and (why := _apache_is_missing()):
        note_missing("mod_wsgi", why)
        pytest.skip(why)


def _program(name: str) -> str:
    return str(Path(sys.executable).with_name(name))


def _unprivileged() -> list[str]:
    """Apache refuses to work as root. As another user it must read the Python of root."""
    if os.geteuid() != 0:
        return []
    number, capability = str(_NOBODY), "+dac_read_search"
    return [
        *("setpriv", "--reuid", number, "--regid", number, "--clear-groups"),
        *("--inh-caps", capability, "--ambient-caps", capability),
    ]


def _apache() -> str:
    return shutil.which("apache2", path=f"{os.environ['PATH']}:/usr/sbin") or ""


def _apache_is_missing() -> str:
    """Why mod_wsgi cannot be tried; empty if it can."""
    if not _apache() or not (_MODULES / "mod_wsgi.so").exists():
        return "Debian's packages apache2-bin and libapache2-mod-wsgi-py3 are not installed"
    if os.geteuid() == 0 and shutil.which("setpriv") is None:
        return "Apache does not work as root, and setpriv is not installed"
    linked = subprocess.run(
        ["ldd", str(_MODULES / "mod_wsgi.so")], capture_output=True, text=True, check=False
    ).stdout
    wanted = f"libpython{sys.version_info.major}.{sys.version_info.minor}."
    return "" if wanted in linked else f"mod_wsgi is not built for {wanted[3:-1]}"
