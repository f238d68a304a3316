"""An identity server that knows the tokens of a test, counts requests, and can fail."""

from __future__ import annotations

import json
import threading
from collections import Counter
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any


class IdentityStub:
    """Keystone's discovery, log-in and validation of tokens, while its context is open."""

    def __init__(self) -> None:
        self.tokens: dict[str, dict[str, Any]] = {}
        self.requests: Counter[str] = Counter()
        self.password = "secret"
        # Validations wait as long as this is not set.
        self.answering = threading.Event()
        self.answering.set()
        # Tokens whose validations stay open until the context ends.
        self.stuck: set[str] = set()
        self._ending = threading.Event()
        # The status of all answers to validations, if the server is broken.
        self.broken: int | None = None
        self.port = 0
        self._server: ThreadingHTTPServer | None = None

    def __enter__(self) -> IdentityStub:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.answering.set()
        self._ending.set()
        self.stop()

    def start(self) -> None:
        """Listen, after a stop at the same port as before."""
        server = _Server(("127.0.0.1", self.port), _Handler)
        server.stub = self
        self.port = server.server_address[1]
        self._server = server
        threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()

    def stop(self) -> None:
        """Refuse connections."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def hold(self, token: str | None) -> None:
        """Keep the validation of a stuck token open."""
        if token in self.stuck:
            self._ending.wait()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def section(self) -> str:
        """`[keystone_authtoken]` for this server."""
        return (
            "[keystone_authtoken]\n"
            f"www_authenticate_uri = {self.url}\nauth_url = {self.url}/v3\n"
            "auth_type = password\nusername = placement\npassword = secret\n"
            "user_domain_id = default\nproject_name = service\nproject_domain_id = default\n"
        )

    def add(
        self,
        name: str,
        *roles: str,
        project: str | None = "lab",
        seconds: float = 3600,
        **content: Any,
    ) -> str:
        """A token with these roles; returns it. `content` is added to what Keystone would say."""
        scope = {} if project is None else {"project": {"id": project, "domain": _DOMAIN}}
        self.tokens[name] = {
            "methods": ["password"],
            "user": {"id": f"id of {name}", "name": name, "domain": _DOMAIN},
            "roles": [{"id": role, "name": role} for role in roles],
            "issued_at": _stamp(0),
            "expires_at": _stamp(seconds),
            "audit_ids": [name],
            "catalog": [],
            **scope,
            **content,
        }
        return name

    @property
    def validations(self) -> int:
        """How often a token was asked for."""
        return self.requests["GET /v3/auth/tokens"]


_DOMAIN = {"id": "default", "name": "Default"}


def _stamp(seconds: float) -> str:
    moment = datetime.now(UTC) + timedelta(seconds=seconds)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class _Server(ThreadingHTTPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 128
    stub: IdentityStub


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        stub = self.server.stub
        path = self.path.partition("?")[0].rstrip("/")
        stub.requests[f"GET {path}"] += 1
        if path == "/v3":
            version = {"id": "v3.14", "status": "stable", "links": [_link(stub)]}
            self._reply(200, {"version": version})
            return
        stub.answering.wait()
        stub.hold(self.headers["X-Subject-Token"])
        token = stub.tokens.get(self.headers["X-Subject-Token"])
        if stub.broken is not None:
            self._reply(stub.broken, {"error": {"message": "broken"}})
        elif self.headers["X-Auth-Token"] != "token of the service":
            self._reply(401, {"error": {"message": "Unauthorized"}})
        elif token is None or (_has_expired(token) and "allow_expired=1" not in self.path):
            self._reply(404, {"error": {"message": "no such token"}})
        else:
            self._reply(200, {"token": token})

    def do_POST(self) -> None:
        stub = self.server.stub
        stub.requests[f"POST {self.path}"] += 1
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        user = body["auth"]["identity"]["password"]["user"]
        if user["password"] != stub.password:
            self._reply(401, {"error": {"message": "wrong password"}})
            return
        endpoint = {"interface": "internal", "region_id": "one", "url": f"{stub.url}/v3"}
        catalog = [{"type": "identity", "name": "keystone", "endpoints": [endpoint]}]
        token = {
            "methods": ["password"],
            "user": {"id": "placement", "name": "placement", "domain": _DOMAIN},
            "expires_at": _stamp(3600),
            "issued_at": _stamp(0),
            "catalog": catalog,
        }
        self._reply(201, {"token": token}, "token of the service")

    def _reply(self, status: int, content: Any, token: str | None = None) -> None:
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        if token is not None:
            self.send_header("X-Subject-Token", token)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        pass


def _link(stub: IdentityStub) -> dict[str, str]:
    return {"rel": "self", "href": f"{stub.url}/v3/"}


def _has_expired(token: dict[str, Any]) -> bool:
    return datetime.fromisoformat(token["expires_at"]) <= datetime.now(UTC)
