"""A real Keystone on a loopback port, one for all processes of a run."""

from __future__ import annotations

import fcntl
import http.client
import json
import os
import shutil
import subprocess
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from ports import reserved_port
from support.requirements import keystone_environment
from support.servers.live_server import clean_environment, start_program
from support.waiting import SECONDS_MAX, wait_until

PASSWORD = "secret"
# What Keystone's own bootstrap makes.
ADMINISTRATOR = {"name": "admin", "password": "admin", "domain": {"id": "default"}}
ROLES = ("reader", "member", "manager", "admin", "service")

_DAY_SECONDS = 86400

_loan = ExitStack()
# The program ends by itself; an object without a reference would warn about it.
_started: list[subprocess.Popen[bytes]] = []


@dataclass
class RealKeystone:
    """The address of Keystone, and the ids of what `_fill` makes there."""

    port: int
    projects: dict[str, str] = field(default_factory=dict)
    roles: dict[str, str] = field(default_factory=dict)
    users: dict[str, str] = field(default_factory=dict)
    services: dict[str, str] = field(default_factory=dict)
    administrator: str = ""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def section(self) -> str:
        """`[keystone_authtoken]` as an operator writes it."""
        return (
            "[keystone_authtoken]\n"
            f"www_authenticate_uri = {self.url}/public\n"
            f"auth_url = {self.url}/v3\n"
            "auth_type = password\nusername = placement\npassword = secret\n"
            "user_domain_name = Default\nproject_name = service\nproject_domain_name = Default\n"
        )

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        ok: tuple[int, ...] = (),
        **headers: str,
    ) -> tuple[dict[str, str], Any]:
        """Send a request as the administrator. Returns headers and content of the answer.

        `ok`: statuses of errors that the caller expects.
        """
        sent = {"content-type": "application/json", "x-auth-token": self.administrator} | {
            name.replace("_", "-"): value for name, value in headers.items()
        }
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS_MAX)
        try:
            data = None if body is None else json.dumps(body)
            connection.request(method, f"/v3{path}", data, sent)
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        assert answer.status < 300 or answer.status in ok, (
            f"{method} {path}: {answer.status} {content[:500]!r}"
        )
        found = {name.lower(): value for name, value in answer.getheaders()}
        return found, json.loads(content) if content else None

    def token(self, user: str, scope: Any = "lab", seconds: int | None = None) -> str:
        """A token of the user for a project, `{"system": ...}`, `{"domain": ...}` or `unscoped`."""
        if isinstance(scope, str) and scope != "unscoped":
            scope = {"project": {"id": self.projects[scope]}}
        return self.token_for(
            {"user": {"id": self.users[user], "password": PASSWORD}}, scope, seconds
        )

    def token_for(self, password: Any, scope: Any, seconds: int | None = None) -> str:
        identity = {"methods": ["password"], "password": password}
        return self.token_by(identity, scope, seconds)

    def token_by(self, identity: Any, scope: Any = None, seconds: int | None = None) -> str:
        """A token by any way to authenticate."""
        auth = {"identity": identity} | ({"scope": scope} if scope is not None else {})
        extra: dict[str, Any] = {}
        if seconds is not None:
            extra["x_test_expiration"] = str(seconds)
        headers, _ = self.call("POST", "/auth/tokens", {"auth": auth}, x_auth_token="", **extra)
        return headers["x-subject-token"]

    def revoke(self, token: str) -> None:
        self.call("DELETE", "/auth/tokens", x_subject_token=token)

    def add_user(self, name: str, grants: dict[str, str]) -> None:
        """A user with roles by project."""
        user = {"name": name, "password": PASSWORD, "domain_id": "default"}
        _, made = self.call("POST", "/users", {"user": user})
        self.users[name] = made["user"]["id"]
        for project, role in grants.items():
            self.grant(name, f"/projects/{self.projects[project]}", role)

    def grant(self, user: str, target: str, role: str) -> None:
        self.call("PUT", f"{target}/users/{self.users[user]}/roles/{self.roles[role]}")

    def set_enabled(self, user: str, enabled: bool) -> None:
        self.call("PATCH", f"/users/{self.users[user]}", {"user": {"enabled": enabled}})

    def add_endpoint(self, service: str, url: str, region: str = "one") -> None:
        """A public and an internal endpoint of a service type, in a region."""
        self.call("PUT", f"/regions/{region}", {"region": {}}, ok=(409,))
        service_id = self.services[service]
        for interface in ("public", "internal"):
            endpoint = {"service_id": service_id, "interface": interface, "url": url}
            self.call("POST", "/endpoints", {"endpoint": endpoint | {"region_id": region}})


def shared_keystone(directory: Path, main_process: int) -> RealKeystone:
    """The Keystone of the run. The first process that asks starts it; it ends with the run."""
    directory.mkdir(exist_ok=True)
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        known = directory / "keystone.json"
        if known.exists():
            return RealKeystone(**json.loads(known.read_text()))
        keystone = _start(directory, main_process)
        known.write_text(json.dumps(asdict(keystone)))
        return keystone


def _start(directory: Path, main_process: int) -> RealKeystone:
    """Start a Keystone with users. The first start of all keeps its database for later ones."""
    prefix = keystone_environment()
    kept = prefix / f"users-{_version_of_users()}"
    is_first = not kept.exists()
    shutil.copy((prefix / "template" if is_first else kept) / "keystone.db", directory)
    keystone = RealKeystone(_loan.enter_context(reserved_port()))
    _serve(keystone, prefix, directory, main_process)
    scope = {"project": {"name": "admin", "domain": {"id": "default"}}}
    if is_first:
        keystone.administrator = keystone.token_for({"user": ADMINISTRATOR}, scope, _DAY_SECONDS)
        _fill(keystone)
        _keep(keystone, directory, kept)
    else:
        content = json.loads((kept / "keystone.json").read_text()) | {"port": keystone.port}
        keystone = RealKeystone(**content)
        keystone.administrator = keystone.token_for({"user": ADMINISTRATOR}, scope, _DAY_SECONDS)
    keystone.add_endpoint("identity", f"{keystone.url}/v3")
    return keystone


def _version_of_users() -> str:
    """Changes with the modules that decide what is in the database."""
    sources = (Path(__file__), Path(__file__).with_name("keystone_program.py"))
    return sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:12]


def _keep(keystone: RealKeystone, directory: Path, kept: Path) -> None:
    """Copy the database at a moment without requests."""
    half = kept.with_suffix(f".{os.getpid()}")
    half.mkdir()
    shutil.copy(directory / "keystone.db", half)
    (half / "keystone.json").write_text(json.dumps(asdict(keystone)))
    with suppress(OSError):
        # Another run may have been faster.
        half.rename(kept)
    shutil.rmtree(half, ignore_errors=True)


def _serve(keystone: RealKeystone, prefix: Path, directory: Path, main_process: int) -> None:
    program = Path(__file__).with_name("keystone_program.py")
    command = [str(prefix / "bin" / "python"), str(program), "serve", str(directory)]
    log = directory / "keystone.log"
    with log.open("ab") as output:
        process = start_program(
            [*command, str(keystone.port), str(main_process)], output, clean_environment()
        )
    _started.append(process)

    def answers() -> bool:
        assert process.poll() is None, f"Keystone ended: {log.read_text()[-2000:]}"
        with suppress(OSError, http.client.HTTPException):
            keystone.call("GET", "")
            return True
        return False

    wait_until(answers, lambda: log.read_text()[-2000:])


def _fill(keystone: RealKeystone) -> None:
    """Users with one role each in the project `lab`, and the accounts of services."""
    _, found = keystone.call("GET", "/roles")
    keystone.roles = {role["name"]: role["id"] for role in found["roles"]}
    for name in ("lab", "office", "service"):
        _, made = keystone.call("POST", "/projects", {"project": {"name": name}})
        keystone.projects[name] = made["project"]["id"]
    for role in ROLES:
        keystone.add_user(f"{role}-user", {"lab": role})
        keystone.grant(f"{role}-user", "/system", role)
        keystone.grant(f"{role}-user", "/domains/default", role)
    for service in ("identity", "placement"):
        content = {"service": {"type": service, "name": service}}
        _, made = keystone.call("POST", "/services", content)
        keystone.services[service] = made["service"]["id"]
    for name in ("placement", "nova"):
        keystone.add_user(name, {"service": "service"})


def main_process() -> int:
    """The process that ends last in this run."""
    return os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid()
