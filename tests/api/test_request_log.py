"""The line of a request in the log, in the usual form and in the forms that operators choose."""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from oslo_log.formatters import ContextFormatter, JSONFormatter

from roost.api.application import Application
from roost.api.candidates import handler
from roost.api.http.requests import Caller, Request
from roost.api.observation.request_log import LogContext
from roost.configuration.logs import shorten_lines
from roost.model.limits import Limits
from roost.store.database import Database
from support.api_client import ApiClient, application_client, settings_for
from support.stubs.identity_stub import IdentityStub

pytestmark = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)

GLOBAL_ID = "req-c0ffee00-0000-0000-0000-000000000001"
HOST = "c0ffee00-0000-0000-0000-000000000001"
DATE_FORM = "%Y-%m-%d %H:%M:%S"
USUAL_LINE = re.compile(
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} \d+ INFO placement\.requestlog "
    r"\[\S+ req-[0-9a-f-]{36} \S+ \S+ (?P<scope>\S+ \S+ \S+ \S+)\] - "
    r'"GET /traits" status: \d+ len: \d+ '
    r"microversion: \S+"
)

Listen = Callable[[logging.Formatter], io.StringIO]


@pytest.fixture
def listen() -> Iterator[Listen]:
    """Adds a handler with a formatter to the log of requests; returns what the handler writes."""
    logger = logging.getLogger("placement.requestlog")
    added = []

    def add(formatter: logging.Formatter) -> io.StringIO:
        written = io.StringIO()
        handler = logging.StreamHandler(written)
        handler.setFormatter(formatter)
        shorten_lines(handler)
        logger.addHandler(handler)
        added.append(handler)
        return written

    logger.setLevel(logging.INFO)
    yield add
    logger.setLevel(logging.NOTSET)
    for one in added:
        logger.removeHandler(one)


@pytest.fixture
def configuration(database: Database, tmp_path: Path) -> Any:
    """The options of oslo.log, with their defaults."""
    return settings_for(database, tmp_path).oslo


class UnshortenedJson(JSONFormatter):
    """The same for JSON."""


class Unshortened(ContextFormatter):
    """The formatter of oslo.log under a name that keeps it from being replaced."""


PREFIX = re.compile(r"\d{4}-\d\d-\d\d \S+ \d+ ERROR roost ")
EVIL = "x\n2026-01-01 00:00:00.000 1 INFO forged\x1b]0;owned\x07\u202e"


@pytest.mark.parametrize("is_stream", [True, False], ids=["file", "syslog"])
@pytest.mark.parametrize("fails", [False, True], ids=["message", "traceback"])
def test_a_message_is_one_line(configuration: Any, is_stream: bool, fails: bool) -> None:
    handler = logging.StreamHandler(io.StringIO()) if is_stream else logging.NullHandler()
    handler.setFormatter(ContextFormatter(config=configuration, datefmt=DATE_FORM))
    shorten_lines(handler)
    info = None
    if fails:
        try:
            raise ValueError(EVIL)
        except ValueError as error:
            info = (type(error), error, error.__traceback__)
    written = handler.format(
        logging.LogRecord("roost", logging.ERROR, "", 1, "host %s of 100%%", (EVIL,), info)
    )
    lines = written.split("\n")
    assert all(line.isprintable() for line in lines)
    shown = EVIL.encode("unicode_escape").decode()
    # A summary of the error may follow.
    assert f"host {shown} of 100%" in lines[0]
    assert fails is (len(lines) > 1)
    # oslo.log begins each line of a traceback with a time, a process and a level.
    assert [line for line in lines if not PREFIX.match(line)] == []


@pytest.mark.parametrize(
    ("token", "headers", "scope"),
    [
        ("admin", {}, "- - - -"),
        ("ann:lab", {"x-openstack-request-id": GLOBAL_ID}, "- - - -"),
        ("admin", {"openstack-system-scope": "all"}, "- all - -"),
        ("ann:lab", {"x-domain-id": "d\x9bm"}, r"d\x9bm - - -"),
        ("\x85ann:l\x9bb", {}, "- - - -"),
        (None, {}, "- - - -"),
    ],
)
def test_the_line_has_the_bytes_that_oslo_log_writes(
    api: ApiClient,
    configuration: Any,
    listen: Listen,
    *,
    token: str | None,
    headers: dict[str, str],
    scope: str,
) -> None:
    ours = listen(ContextFormatter(config=configuration, datefmt=DATE_FORM))
    theirs = listen(Unshortened(config=configuration, datefmt=DATE_FORM))
    replace(api, token=token).request("GET", "/traits", headers=headers)
    assert ours.getvalue() == theirs.getvalue()
    line = USUAL_LINE.fullmatch(ours.getvalue().rstrip("\n"))
    assert line is not None
    assert line["scope"] == scope


@pytest.mark.parametrize("form", ["lines", "json"])
def test_the_line_names_the_domains_of_the_caller(
    database: Database, tmp_path: Path, configuration: Any, listen: Listen, form: str
) -> None:
    if form == "json":
        ours, theirs = listen(JSONFormatter()), listen(UnshortenedJson())
    else:
        ours = listen(ContextFormatter(config=configuration, datefmt=DATE_FORM))
        theirs = listen(Unshortened(config=configuration, datefmt=DATE_FORM))
    with IdentityStub() as identity:
        people = {"id": "people", "name": "People"}
        identity.add("good", "admin", user={"id": "ann", "name": "ann", "domain": people})
        settings = settings_for(
            database, tmp_path, f"[api]\nauth_strategy = keystone\n{identity.section}"
        )
        client = application_client(Application(settings, database))
        assert replace(client, token="good").get("/traits").status == 200
    if form == "json":
        assert json.loads(ours.getvalue()) == json.loads(theirs.getvalue())
        assert json.loads(ours.getvalue())["context"]["user_domain"] == "people"
        assert json.loads(ours.getvalue())["extra"]["project_domain"] == "default"
    else:
        assert ours.getvalue() == theirs.getvalue()
        assert " ann lab - - people default] " in ours.getvalue()


def test_lines_of_a_thread_name_the_caller_as_soon_as_it_is_known(kind: str) -> None:
    request = Request({"REQUEST_METHOD": "GET"}, Limits())
    context = LogContext(request)
    assert context.get_logging_values()["user"] is None
    request.caller = Caller(user="ann", project="lab")
    assert context.get_logging_values()["user"] == "ann"
    assert context.project_id == "lab"


def test_the_line_has_the_form_that_the_operator_chose(
    api: ApiClient, configuration: Any, listen: Listen
) -> None:
    form = "%(levelname)s %(request_id)s {%(user_identity)s} %(message)s"
    configuration.set_override("logging_context_format_string", form)
    configuration.set_override("logging_user_identity_format", "%(user)s/%(project)s")
    written = listen(ContextFormatter(config=configuration, datefmt=DATE_FORM))
    answer = replace(api, token="ann:lab").get("/traits")
    request_id = answer.headers["x-openstack-request-id"]
    assert written.getvalue().startswith(f'INFO {request_id} {{ann/lab}} - "GET /traits" status:')


def test_a_line_in_json_has_the_members_that_oslo_log_writes(
    api: ApiClient, listen: Listen
) -> None:
    ours = listen(JSONFormatter(datefmt=DATE_FORM))
    theirs = listen(UnshortenedJson(datefmt=DATE_FORM))
    headers = {"x-openstack-request-id": GLOBAL_ID}
    replace(api, token="ann:lab").request("GET", "/traits", headers=headers)
    assert json.loads(ours.getvalue()) == json.loads(theirs.getvalue())


def test_a_line_in_json_has_the_fields_of_the_request(api: ApiClient, listen: Listen) -> None:
    written = listen(JSONFormatter(datefmt=DATE_FORM))
    headers = {"x-openstack-request-id": GLOBAL_ID}
    client = replace(api, token="ann:lab")
    answer = client.request("GET", "/allocation_candidates?resources=VCPU:1", headers=headers)
    fields = json.loads(written.getvalue())["extra"]
    assert fields.pop("duration") > 0
    stages = fields.pop("stages")
    assert fields == {
        "request_id": answer.headers["x-openstack-request-id"],
        "global_request_id": GLOBAL_ID,
        "user": "ann",
        "project": "lab",
        "domain": None,
        "system_scope": None,
        "user_domain": None,
        "project_domain": None,
        "remote": None,
        "method": "GET",
        "path": "/allocation_candidates",
        "query": "resources=VCPU:1",
        "route": "/allocation_candidates",
        "version": "1.39",
        "status": answer.status,
        "bytes": len(answer.body),
    }
    if answer.status == 200:
        assert {"freshness", "search", "render"} <= stages.keys()


def test_the_line_of_an_answer_in_pieces_comes_at_its_end(
    api: ApiClient, listen: Listen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handler, "_CANDIDATES_AT_ONCE_MAX", -1)
    api.post("/resource_providers", {"name": "host", "uuid": HOST})
    inventories = {"VCPU": {"total": 4}}
    body = {"resource_provider_generation": 0, "inventories": inventories}
    api.put(f"/resource_providers/{HOST}/inventories", body)
    written = listen(JSONFormatter(datefmt=DATE_FORM))
    answer = api.get("/allocation_candidates?resources=VCPU:1")
    assert "content-length" not in answer.headers
    (line,) = written.getvalue().splitlines()
    assert json.loads(line)["extra"]["bytes"] == len(answer.body)
    assert f"len: {len(answer.body)} " in json.loads(line)["message"]


def test_an_answer_that_its_client_never_reads_has_a_line(
    database: Database,
    tmp_path: Path,
    api: ApiClient,
    listen: Listen,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(handler, "_CANDIDATES_AT_ONCE_MAX", -1)
    application = Application(settings_for(database, tmp_path), database)
    written = listen(JSONFormatter(datefmt=DATE_FORM))
    environ = {
        "REQUEST_METHOD": "GET",
        "PATH_INFO": "/allocation_candidates",
        "QUERY_STRING": "resources=VCPU:1",
        "HTTP_X_AUTH_TOKEN": "admin",
        "HTTP_OPENSTACK_API_VERSION": "placement 1.39",
        "wsgi.input": io.BytesIO(),
    }
    body: Any = application(environ, lambda status, headers: None)
    assert not written.getvalue()
    body.close()
    body.close()
    (line,) = written.getvalue().splitlines()
    assert json.loads(line)["extra"]["bytes"] == 0


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
def test_a_probe_is_a_line_for_debugging_only(api: ApiClient, listen: Listen, path: str) -> None:
    written = listen(JSONFormatter(datefmt=DATE_FORM))
    assert api.get(path).status == 200
    assert not written.getvalue()
    logging.getLogger("placement.requestlog").setLevel(logging.DEBUG)
    api.get(path)
    assert json.loads(written.getvalue())["levelname"] == "DEBUG"


def test_the_line_can_be_json(api: ApiClient, listen: Listen) -> None:
    written = listen(JSONFormatter())
    answer = replace(api, token="ann:lab").get("/traits")
    record = json.loads(written.getvalue())
    assert record["message"].startswith('- "GET /traits" status: ')
    assert record["context"]["request_id"] == answer.headers["x-openstack-request-id"]
    assert (record["context"]["user"], record["context"]["project"]) == ("ann", "lab")
    assert record["funcname"] == "log_request"
