"""Requests that schemathesis generates from the OpenAPI document, against a live server.

No request may end in a 500, and no answer may have a status or a shape that the document lacks.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.generation import GenerationMode
from schemathesis.generation.case import Case
from schemathesis.specs.openapi import checks

from support.api_client import ApiClient
from support.properties import many
from support.servers.live_server import LiveServer

pytestmark = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)

PROVIDER = "c0ffee00-0000-4000-8000-000000000001"
CONSUMER = "c0ffee00-0000-4000-8000-00000000c001"
# What exists while requests come.
EXISTING = {
    "uuid": PROVIDER,
    "consumer": CONSUMER,
    "name": "CUSTOM_GOLD",
    "resource_class": "VCPU",
}
TOKEN = {"X-Auth-Token": "admin"}
CHECKS = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
    checks.response_headers_conformance,
]


@pytest.fixture
def server(database_url: str, tmp_path: Path) -> Iterator[LiveServer]:
    with LiveServer(database_url, tmp_path, workers=1) as live:
        yield live


def make_existing(client: ApiClient) -> None:
    """Make what a request may have deleted or changed."""
    provider = f"/resource_providers/{PROVIDER}"
    client.post("/resource_providers", {"name": "host", "uuid": PROVIDER})
    client.put("/traits/CUSTOM_GOLD")
    client.put("/resource_classes/CUSTOM_GOLD")
    client.post(f"{provider}/inventories", {"resource_class": "VCPU", "total": 8})
    owner = {"project_id": "p", "user_id": "u", "consumer_type": "INSTANCE"}
    allocations = {PROVIDER: {"resources": {"VCPU": 1}}}
    client.put(
        f"/allocations/{CONSUMER}",
        {"allocations": allocations, "consumer_generation": None, **owner},
    )


def test_generated_requests_get_documented_answers(server: LiveServer) -> None:
    client = server.client()
    document = document_without_version(server, "1.39")
    headers = TOKEN | version_header("1.39")
    schema = schemathesis.openapi.from_dict(document)
    count = 0
    with requests.Session() as session:

        def send(case: Case[Any]) -> None:
            nonlocal count
            count += 1
            answer = case.call(base_url=server.url, session=session, headers=headers)
            case.validate_response(answer, checks=CHECKS)

        for found in schema.get_all_operations():
            assert isinstance(found, Ok), found
            operation = found.ok()
            for mode in modes_of(document["paths"][operation.path][operation.method]):
                make_existing(client)
                cases = operation.as_strategy(mode, path_parameters=existing_of(operation.path))
                # Strict schemas take schemathesis long. That is no matter of the service.
                bounds = settings(max_examples=many(1), suppress_health_check=list(HealthCheck))
                bounds(given(cases)(send))()
    assert count >= 2 * len(document["paths"])
    assert "The request failed" not in server.log


def document_without_version(server: LiveServer, version: str) -> dict[str, Any]:
    """The document of one version. The test sends the header of the version itself.

    A wrong header means 1.0, whose answers another document has.
    """
    document: dict[str, Any] = server.client().get(f"/roost/openapi.json?version={version}").json
    header = {"$ref": "#/components/parameters/microversion"}
    for methods in document["paths"].values():
        for operation in methods.values():
            operation["parameters"] = [each for each in operation["parameters"] if each != header]
    return document


def version_header(version: str) -> dict[str, str]:
    return {"OpenStack-API-Version": f"placement {version}"}


def modes_of(operation: dict[str, Any]) -> list[GenerationMode]:
    """Right and wrong requests; a request without parameters and body cannot be wrong."""
    variable = [each for each in operation["parameters"] if each.get("in") != "path"]
    if variable or "requestBody" in operation:
        return [GenerationMode.POSITIVE, GenerationMode.NEGATIVE]
    return [GenerationMode.POSITIVE]


def existing_of(path: str) -> dict[str, Any]:
    return {name: value for name, value in EXISTING.items() if f"{{{name}}}" in path}


@pytest.mark.slow
@pytest.mark.parametrize("version", ["all", "1.0", "1.8", "1.20", "1.39"])
def test_thousands_of_generated_requests_get_documented_answers(
    server: LiveServer, tmp_path: Path, version: str
) -> None:
    make_existing(server.client())
    location, headers = f"{server.url}/roost/openapi.json", TOKEN
    if version != "all":
        location = str(tmp_path / "openapi.json")
        Path(location).write_text(json.dumps(document_without_version(server, version)))
        headers = TOKEN | version_header(version)
    names = [check.__name__ for check in CHECKS]
    if version != "1.0":
        # Before 1.5, the contract has no `allow` in the 405 to a deletion of all inventories.
        names.append("unsupported_method")
    command = [
        *(sys.executable, "-m", "schemathesis.cli", "run", location, "--url", server.url),
        *(part for name, value in headers.items() for part in ("--header", f"{name}: {value}")),
        *("--checks", ",".join(names)),
        *("--phases", "examples,coverage,fuzzing"),
        *("--max-examples", "20", "--no-color", "--warnings", "off"),
        *("--generation-database", "none"),
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    assert "The request failed" not in server.log
