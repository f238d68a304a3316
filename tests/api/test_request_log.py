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

from roost.configuration.log_lines import shorten_lines
from roost.store.database import Database
from support.api_client import ApiClient, settings_for

pytestmark = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)

GLOBAL_ID = "req-c0ffee00-0000-0000-0000-000000000001"
DATE_FORM = "%Y-%m-%d %H:%M:%S"
USUAL_LINE = re.compile(
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} \d+ INFO placement\.requestlog "
    r'\[\S+ req-[0-9a-f-]{36} \S+ \S+ - - - -\] - "GET /traits" status: \d+ len: \d+ '
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
    for handler in added:
        logger.removeHandler(handler)


@pytest.fixture
def configuration(database: Database, tmp_path: Path) -> Any:
    """The options of oslo.log, with their defaults."""
    return settings_for(database, tmp_path).oslo


class Unshortened(ContextFormatter):
    """The formatter of oslo.log under a name that keeps it from being replaced."""


@pytest.mark.parametrize(
    ("token", "headers"),
    [
        ("admin", {}),
        ("ann:lab", {"x-openstack-request-id": GLOBAL_ID}),
        ("admin", {"openstack-system-scope": "all"}),
        ("\x85ann:l\x9bb", {}),
        (None, {}),
    ],
)
def test_the_line_has_the_bytes_that_oslo_log_writes(
    api: ApiClient,
    configuration: Any,
    listen: Listen,
    token: str | None,
    headers: dict[str, str],
) -> None:
    ours = listen(ContextFormatter(config=configuration, datefmt=DATE_FORM))
    theirs = listen(Unshortened(config=configuration, datefmt=DATE_FORM))
    replace(api, token=token).request("GET", "/traits", headers=headers)
    assert ours.getvalue() == theirs.getvalue()
    assert USUAL_LINE.fullmatch(ours.getvalue().rstrip("\n"))


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


def test_the_line_can_be_json(api: ApiClient, listen: Listen) -> None:
    written = listen(JSONFormatter())
    answer = replace(api, token="ann:lab").get("/traits")
    record = json.loads(written.getvalue())
    assert record["message"].startswith('- "GET /traits" status: ')
    assert record["context"]["request_id"] == answer.headers["x-openstack-request-id"]
    assert (record["context"]["user"], record["context"]["project"]) == ("ann", "lab")
    assert record["funcname"] == "log_request"
