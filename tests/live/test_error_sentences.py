"""For each status, an error begins with the sentence of the reference."""

from __future__ import annotations

import html
import json
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from roost.api.http.errors import HttpError
from roost.store.connections.errors import DatabaseUnusable
from roost.store.database import Database
from support.api_client import Answer, ApiClient, limited_client
from support.requirements import reference_environment
from support.servers.live_server import ReferenceServer
from support.waiting import SECONDS_MAX

pytestmark = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)

PROVIDER = "c0ffee00-0000-0000-0000-00000000e001"
NOWHERE = "c0ffee00-0000-0000-0000-00000000dead"
CONSUMER = "c0ffee00-0000-0000-0000-00000000c0de"
TOO_MUCH = {
    "allocations": {PROVIDER: {"resources": {"VCPU": 9}}},
    "project_id": "project",
    "user_id": "user",
    "consumer_generation": None,
    "consumer_type": "INSTANCE",
}
NOT_A_NUMBER = (
    b'{"resource_provider_generation": 1, "inventories": '
    b'{"VCPU": {"total": 4, "allocation_ratio": NaN}}}'
)


@dataclass(frozen=True)
class Refused:
    """A request that both servers refuse with the same status."""

    status: int
    method: str
    path: str
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    version: str = "1.39"
    token: str | None = "admin"

    def send(self, client: ApiClient, accept: str) -> Answer:
        as_told = replace(client.at(self.version), token=self.token)
        answer = as_told.request(
            self.method, self.path, self.body, {"accept": accept} | self.headers
        )
        assert answer.status == self.status, answer
        return answer


ALLOCATIONS = f"/allocations/{CONSUMER}"
WRITES = [
    Refused(400, "PUT", ALLOCATIONS, b"{"),
    Refused(400, "DELETE", "/traits/CUSTOM_NONE", headers={"content-length": "x"}),
    Refused(401, "GET", "/resource_providers", token=None),
    Refused(404, "GET", "/nowhere"),
    Refused(404, "DELETE", f"/resource_providers/{NOWHERE}"),
    Refused(404, "GET", "/traits", version="1.0"),
    Refused(405, "PATCH", "/resource_providers"),
    Refused(405, "DELETE", f"/resource_providers/{PROVIDER}/inventories", version="1.0"),
    Refused(406, "GET", "/resource_providers", version="1.99"),
    Refused(409, "POST", "/resource_providers", {"name": "host", "uuid": PROVIDER}),
    Refused(409, "PUT", ALLOCATIONS, TOO_MUCH),
    Refused(415, "PUT", ALLOCATIONS, b"{}", {"content-type": "text/plain"}),
    Refused(415, "PUT", ALLOCATIONS, b"{}", {"content-type": "x/y; charset=utf-8"}),
    Refused(415, "POST", "/resource_providers", b"{}", {"content-type": "<i>Application/JSON"}),
]
READS = [
    Refused(400, "GET", "/resource_providers?nonsense=1"),
    Refused(400, "GET", "/resource_providers", version="x"),
    Refused(403, "GET", "/resource_providers", token="user:project"),
    Refused(406, "GET", "/resource_providers", version="1.99", headers={"accept": "*/*"}),
    Refused(
        406,
        "GET",
        "/resource_providers",
        version="1.99",
        headers={"accept": "application/json;q=1, text/html;q=0.5"},
    ),
]


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiClient]:
    """The reference with one provider."""
    with ReferenceServer(reference_environment(), tmp_path_factory.mktemp("reference")) as server:
        client = server.client()
        make_provider(client)
        yield client


@pytest.fixture
def roost(api: ApiClient) -> ApiClient:
    """Roost with the same provider."""
    make_provider(api)
    return api


def make_provider(client: ApiClient) -> None:
    path = f"/resource_providers/{PROVIDER}"
    assert client.post("/resource_providers", {"name": "host", "uuid": PROVIDER}).status == 200
    inventories = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 4}}}
    assert client.put(f"{path}/inventories", inventories).status == 200


def general(text: str) -> str:
    """The first paragraph of a detail. It depends on the status and on names in the request."""
    return text.partition("\n\n")[0]


@pytest.mark.parametrize("refused", WRITES + READS, ids=lambda case: f"{case.status}")
def test_details_begin_as_those_of_the_reference(
    roost: ApiClient, reference: ApiClient, refused: Refused
) -> None:
    ours, theirs = (refused.send(client, "application/json") for client in (roost, reference))
    if refused.status == 401:
        # In the text of a 401, the reference leaves HTML.
        expected = general(theirs.json["message"].replace("<br /><br />\n", "\n"))
        assert general(ours.json["message"]) == expected
        assert ours.json | {"message": ""} == theirs.json | {"message": ""}
        return
    assert general(ours.detail) == general(theirs.detail)
    assert (ours.detail[-2:] == "  ") is (theirs.detail[-2:] == "  ")
    assert ours.error.keys() == theirs.error.keys()


@pytest.mark.parametrize("refused", WRITES, ids=lambda case: f"{case.status}")
def test_plain_text_begins_as_that_of_the_reference(
    roost: ApiClient, reference: ApiClient, refused: Refused
) -> None:
    ours, theirs = (refused.send(client, "text/plain") for client in (roost, reference))
    assert ours.headers["content-type"] == theirs.headers["content-type"]
    assert ours.body.decode().split("\n\n")[:2] == theirs.body.decode().split("\n\n")[:2]


@pytest.mark.parametrize("refused", WRITES, ids=lambda case: f"{case.status}")
def test_html_pages_contain_the_sentence_of_the_reference(
    roost: ApiClient, reference: ApiClient, refused: Refused
) -> None:
    ours, theirs = (refused.send(client, "text/html") for client in (roost, reference))
    assert ours.headers["content-type"] == theirs.headers["content-type"]
    sentence = paragraphs(theirs)[0]
    assert sentence in paragraphs(ours)


def paragraphs(answer: Answer) -> list[str]:
    """The texts of a page below its heading."""
    below = answer.body.decode().partition("</h1>")[2]
    texts = re.split(r"</?p>|<br />|</?body>|</?html>", below)
    return [" ".join(html.unescape(text).split()) for text in texts if text.strip()]


def test_an_internal_error_has_the_sentence_of_the_reference(
    roost: ApiClient, reference: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = reference.put(f"/resource_providers/{PROVIDER}/inventories", NOT_A_NUMBER)
    assert failed.status == 500
    monkeypatch.setattr(Database, "read", _raises(ValueError("secret")))
    ours = roost.get("/resource_providers")
    assert (ours.status, general(ours.detail)) == (500, general(failed.detail))
    assert "secret" not in ours.detail


def _raises(error: Exception) -> Any:
    def fail(*args: object, **kwargs: object) -> None:
        raise error

    return fail


def test_413_and_503_have_the_sentences_of_the_library_of_the_reference(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No request makes the reference answer 413 or 503. Its library, webob, has the sentences.
    program = (
        "import json, webob.exc as exc;"
        "print(json.dumps({code: kind.explanation for code, kind in exc.status_map.items()}))"
    )
    python = reference_environment() / "bin" / "python"
    run = subprocess.run(
        [python, "-c", program], capture_output=True, check=True, timeout=SECONDS_MAX
    )
    explanations = json.loads(run.stdout)
    client = limited_client(database, tmp_path, max_body_bytes=10)
    too_large = client.post("/resource_providers", {"name": "a" * 20})
    assert too_large.status == 413
    assert general(too_large.detail) == explanations["413"]
    monkeypatch.setattr(Database, "read", _raises(DatabaseUnusable("gone")))
    unavailable = client.get("/resource_providers")
    assert unavailable.status == 503
    assert general(unavailable.detail) == explanations["503"]


def test_names_in_a_request_inject_no_html_into_an_error(roost: ApiClient) -> None:
    odd = Refused(415, "PUT", ALLOCATIONS, b"{}", {"content-type": "<script>{}{0}%s"})
    assert b"<script>" not in odd.send(roost, "text/html").body
    assert "<script>" not in odd.send(roost, "application/json").detail
    assert HttpError(406, named="{0}").general.endswith("(content of type {0}. ")
