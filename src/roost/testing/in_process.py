"""Roost in this process: applications on databases of their own, in a temporary directory."""

from __future__ import annotations

import shutil
import weakref
from dataclasses import dataclass, replace
from functools import cache
from io import BytesIO
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from urllib.parse import unquote_to_bytes
from wsgiref.util import setup_testing_defaults

from roost.api.application import Application
from roost.api.policy.policy import Policy
from roost.bootstrap import open_database
from roost.client.transport import PlacementRequest, PlacementResponse
from roost.configuration.settings import Settings, load_settings
from roost.store.database import Database
from roost.store.meta import renew_identity

_CONFIGURATION = """\
[api]
auth_strategy = noauth2
[placement_database]
sqlite_synchronous = false
[oslo_policy]
enforce_new_defaults = false
policy_file = {policy}
[roost]
slow_request_seconds = 0
"""
"""A policy of its own, and no warning in the log on a busy machine."""


class PrivateRoost:
    """An application on a database of its own, which is empty. Both go with this object."""

    def __init__(self) -> None:
        template = _template()
        directory = Path(mkdtemp(dir=template.directory))
        file = shutil.copy(template.file, directory)
        options = replace(template.settings.database, url=f"sqlite:///{file}")
        database = Database(options)
        database.write_at_once(renew_identity)
        self._application = Application(template.settings, database, template.policy)
        weakref.finalize(self, _remove, self._application, directory)

    def answer(self, request: PlacementRequest) -> PlacementResponse:
        """The answer to a request of an administrator."""
        path, _, query = request.path.partition("?")
        content = request.content() or b""
        environ: dict[str, Any] = {
            "REQUEST_METHOD": request.method,
            "SCRIPT_NAME": "",
            "PATH_INFO": unquote_to_bytes(path).decode("latin-1"),
            "QUERY_STRING": query,
            "CONTENT_LENGTH": str(len(content)),
            "HTTP_X_AUTH_TOKEN": "admin",
            "wsgi.input": BytesIO(content),
        }
        for name, value in request.headers().items():
            key = name.upper().replace("-", "_")
            environ[key if key == "CONTENT_TYPE" else f"HTTP_{key}"] = value
        setup_testing_defaults(environ)
        started: list[tuple[str, list[tuple[str, str]]]] = []
        pieces = self._application(environ, lambda status, sent: started.append((status, sent)))
        body = b"".join(pieces)
        ((status, headers),) = started
        return PlacementResponse(int(status.split()[0]), dict(headers), body)

    def close(self) -> None:
        """Close the connections; the next request opens new ones."""
        self._application.close()


def _remove(application: Application, directory: Path) -> None:
    application.close()
    shutil.rmtree(directory, ignore_errors=True)


@dataclass(frozen=True)
class _Template:
    """What all applications of this process begin with: to make it takes a second."""

    directory: Path
    settings: Settings
    policy: Policy
    file: Path


@cache
def _template() -> _Template:
    directory = Path(mkdtemp(prefix="roost-testing-"))
    # The exit of the process comes to this after all that was made later.
    weakref.finalize(_template, shutil.rmtree, directory, ignore_errors=True)
    file, policy = directory / "placement.db", directory / "policy.yaml"
    configuration = directory / "placement.conf"
    # Without these files, Roost reads those of the machine.
    policy.write_text("{}")
    configuration.write_text(_CONFIGURATION.format(policy=policy))
    settings = load_settings([str(configuration)], f"sqlite:///{file}")
    open_database(settings)
    return _Template(directory, settings, Policy(settings.oslo), file)
