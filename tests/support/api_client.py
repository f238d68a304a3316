"""A client of the API, in this process or over a socket."""

from __future__ import annotations

import http.client
import io
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes, urlsplit

from roost.api.application import Application
from roost.configuration.settings import Settings, load_settings
from roost.store.database import Database

Send = Callable[[str, str, bytes, Mapping[str, str]], "Answer"]


@dataclass(frozen=True)
class Answer:
    """A response."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> Any:
        """The one error of an error body."""
        (found,) = self.json["errors"]
        return found

    @property
    def detail(self) -> str:
        text: str = self.error["detail"]
        return text


# Makes an application with these lines of `placement.conf`, and gives a client of it.
Configured = Callable[..., "ApiClient"]


@dataclass(frozen=True)
class ApiClient:
    """Sends requests with a version and a token; by default the latest version and `admin`."""

    send: Send
    version: str | None = "1.39"
    token: str | None = "admin"

    def at(self, version: str | None) -> ApiClient:
        """The same client with another microversion."""
        return replace(self, version=version)

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        sent = {"accept": "application/json"}
        if self.token is not None:
            sent["x-auth-token"] = self.token
        if self.version is not None:
            sent["openstack-api-version"] = f"placement {self.version}"
        data = b""
        if body is not None:
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            sent |= {"content-type": "application/json", "content-length": str(len(data))}
        for name, value in (headers or {}).items():
            sent[name.lower()] = value
        return self.send(method, path, data, sent)

    def get(self, path: str, **headers: str) -> Answer:
        return self.request("GET", path, headers=_names(headers))

    def put(self, path: str, body: Any = None, **headers: str) -> Answer:
        return self.request("PUT", path, body, _names(headers))

    def post(self, path: str, body: Any = None, **headers: str) -> Answer:
        return self.request("POST", path, body, _names(headers))

    def delete(self, path: str, **headers: str) -> Answer:
        return self.request("DELETE", path, headers=_names(headers))


def _names(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}


def settings_for(
    database: Database, directory: Path, configuration: str = "", policy: str = "{}"
) -> Settings:
    """The settings that a `placement.conf` in the directory gives."""
    policy_file = directory / "policy.yaml"
    policy_file.write_text(policy)
    config_file = directory / "placement.conf"
    config_file.write_text(
        configuration
        or f"[api]\nauth_strategy = noauth2\n[oslo_policy]\nenforce_new_defaults = false\n"
        f"policy_file = {policy_file}\n"
    )
    return load_settings([str(config_file)], str(database.options.url))


def in_process_client(
    database: Database, directory: Path, configuration: str = "", policy: str = "{}"
) -> ApiClient:
    """A client of an application in this process."""
    settings = settings_for(database, directory, configuration, policy)
    return application_client(Application(settings, database))


def limited_application(database: Database, directory: Path, **limits: int) -> Application:
    """An application with these limits instead of the default ones."""
    settings = settings_for(database, directory)
    return Application(replace(settings, limits=replace(settings.limits, **limits)), database)


def limited_client(database: Database, directory: Path, **limits: int) -> ApiClient:
    """A client of an application with these limits instead of the default ones."""
    return application_client(limited_application(database, directory, **limits))


def environ_of(method: str, path: str, body: bytes, headers: Mapping[str, str]) -> dict[str, Any]:
    """What a WSGI server tells an application of a request."""
    split = urlsplit(path)
    environ: dict[str, Any] = {
        "REQUEST_METHOD": method,
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote_to_bytes(split.path).decode("latin-1"),
        "QUERY_STRING": split.query,
        "SERVER_NAME": "roost.example",
        "SERVER_PORT": "80",
        "HTTP_HOST": "roost.example",
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(body),
    }
    for name, value in headers.items():
        key = name.upper().replace("-", "_")
        environ[key if key in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{key}"] = value
    return environ


def application_client(application: Application, script_name: str = "") -> ApiClient:
    """A client of a WSGI callable."""

    def send(method: str, path: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        environ = environ_of(method, path, body, headers) | {"SCRIPT_NAME": script_name}
        started: list[tuple[str, list[tuple[str, str]]]] = []

        def start_response(status: str, sent: list[tuple[str, str]]) -> None:
            started.append((status, sent))

        data = b"".join(application(environ, start_response))
        ((status, sent),) = started
        names = [name for name, _ in sent]
        assert len(names) == len(set(names)), f"a header was sent twice: {names}"
        return Answer(int(status.split()[0]), dict(sent), data)

    return ApiClient(send)


def http_client(connection: http.client.HTTPConnection) -> ApiClient:
    """A client of a live server for one thread. The client keeps one connection."""

    def send(method: str, path: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        try:
            connection.request(method, path, body or None, dict(headers))
            response = connection.getresponse()
            data = response.read()
        except (http.client.HTTPException, OSError):
            connection.close()
            raise
        sent = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, sent, data)

    return ApiClient(send)
