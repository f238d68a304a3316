"""`/roost/openapi.json`: clients get it, and the service answers as it says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from roost.api.http.microversions import HISTORY, MAX_VERSION
from roost.api.routes import ROUTES
from support.api_client import Answer, ApiClient
from support.documented_answers import operations, parsed

pytestmark = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)

VERSIONS = [str(version) for version, _ in HISTORY]
# The first versions of what differs most.
STEPS = ["1.0", "1.2", "1.8", "1.12", "1.14", "1.20", "1.28", "1.34", "1.38", "1.39"]
PROVIDER = "c0ffee00-0000-4000-8000-000000000001"
OTHER = "c0ffee00-0000-4000-8000-000000000002"
CONSUMER = "c0ffee00-0000-4000-8000-00000000c001"


# The document as clients get it.


def test_a_client_gets_all_versions_or_the_one_it_names(api: ApiClient) -> None:
    whole = api.get("/roost/openapi.json").json
    assert whole["openapi"].startswith("3.1.")
    assert list(whole["x-openstack-microversions"]["history"]) == VERSIONS
    old = api.get("/roost/openapi.json?version=1.9").json
    assert "/usages" in old["paths"]
    assert "/allocation_candidates" not in old["paths"]
    assert set(old["paths"]) < set(whole["paths"])
    latest, newest = (
        api.get(f"/roost/openapi.json?version={version}").body
        for version in ("latest", str(MAX_VERSION))
    )
    assert latest == newest


def test_the_version_of_the_request_does_not_change_the_document(api: ApiClient) -> None:
    bodies = {api.at(version).get("/roost/openapi.json").body for version in (None, "1.0", "1.39")}
    assert len(bodies) == 1


@pytest.mark.parametrize("version", ["1.40", "2.0", "x", "", "1", "-1.0", "1.1,placement 1.2"])
def test_a_version_that_does_not_exist_is_refused_with_those_that_do(
    api: ApiClient, version: str
) -> None:
    answer = api.get(f"/roost/openapi.json?version={version.replace(' ', '%20')}")
    assert answer.status == 400
    assert "Send one from 1.0 to 1.39, or `latest`." in answer.detail
    assert answer.error["code"] == "placement.query.bad_value"


def test_unknown_parameters_are_refused_by_name(api: ApiClient) -> None:
    answer = api.get("/roost/openapi.json?verison=1.0")
    assert (answer.status, "'verison' is no parameter" in answer.detail) == (400, True)


def test_the_document_needs_a_token(api: ApiClient) -> None:
    assert replace(api, token=None).get("/roost/openapi.json").status == 401


def test_a_client_that_has_the_document_gets_no_second_copy(api: ApiClient) -> None:
    first = api.get("/roost/openapi.json?version=1.10")
    tag = first.headers["etag"]
    for known in (tag, f'"other", W/{tag}', "*"):
        again = api.get("/roost/openapi.json?version=1.10", if_none_match=known)
        assert (again.status, again.body, again.headers["etag"]) == (304, b"", tag)
        assert "content-length" not in again.headers
    other = api.get("/roost/openapi.json?version=1.11", if_none_match=tag)
    assert other.status == 200


# The service answers as the document says. `api` compares each answer with the document.


def test_a_route_begins_with_the_version_that_the_document_names(api: ApiClient) -> None:
    for path, method, content in operations(None):
        first = parsed(content["x-openstack-microversions"]["min"])
        if first > (1, 0):
            before = ask(api.at(f"1.{first.minor - 1}"), method, path)
            assert before.status in (404, 405), f"{method} {path}"
            assert before.detail.splitlines()[-1].strip() == "", f"{method} {path}"
            since = ask(api.at(str(first)), method, path)
            assert since.status != 405, f"{method} {path}"
            assert since.status != 404 or since.detail.splitlines()[-1].strip(), f"{method} {path}"


def ask(client: ApiClient, method: str, path: str) -> Answer:
    filled = path.format(
        uuid=PROVIDER, provider=PROVIDER, consumer=CONSUMER, name="CUSTOM_X", resource_class="VCPU"
    )
    return client.request(method, filled, {} if method in ("POST", "PUT") else None)


@pytest.mark.parametrize("version", STEPS)
def test_every_success_that_the_document_names_happens_with_its_examples(
    api: ApiClient, version: str
) -> None:
    walk = Walk(api, version)
    walk.through_all_routes()
    documented = {
        (content["operationId"], int(status))
        for _, _, content in operations(version)
        for status in content["responses"]
        if int(status) < 400
    }
    assert walk.seen == documented


class Walk:
    """A client that sends the examples of the document of one version, in a sensible order."""

    def __init__(self, api: ApiClient, version: str) -> None:
        self.seen: set[tuple[str, int]] = set()
        self._api = api.at(version)
        self._version = parsed(version)
        self._known = {
            content["operationId"]: (method, path, content)
            for path, method, content in operations(version)
        }

    def send(
        self, operation: str, query: str = "", change: dict[str, Any] | None = None, **path: str
    ) -> Answer | None:
        """The answer to the example of an operation; `None` if the version lacks the operation."""
        if operation not in self._known:
            return None
        method, template, content = self._known[operation]
        names = {"uuid": PROVIDER, "provider": PROVIDER, "consumer": CONSUMER}
        names |= {"resource_class": "VCPU"} | path
        body = None
        if "requestBody" in content:
            body = content["requestBody"]["content"]["application/json"]["example"]
            body = body | change if change else body
        answer = self._api.request(method, template.format(**names) + query, body)
        assert answer.status < 400, f"{operation}: {answer.status} {answer.body.decode()}"
        self.seen.add((operation, answer.status))
        return answer

    @property
    def _generation(self) -> dict[str, Any]:
        answer = self._api.get(f"/resource_providers/{PROVIDER}")
        return {"resource_provider_generation": answer.json["generation"]}

    def through_all_routes(self) -> None:
        self._operating()
        self._names()
        self._provider()
        self._allocations()
        self._rest()
        self._removal()

    def _operating(self) -> None:
        answer = self.send("show_openapi")
        assert answer is not None
        tag = answer.headers["etag"]
        again = self._api.get("/roost/openapi.json", if_none_match=tag)
        self.seen.add(("show_openapi", again.status))
        self._pages()

    def _pages(self) -> None:
        self.send("find_pages")
        pages: dict[str, dict[str, str]] = {
            "show_first_page": {},
            "show_page": {"page": "tree"},
            "show_page_file": {"file": "main.js"},
        }
        for operation, names in pages.items():
            answer = self.send(operation, "", None, **names)
            assert answer is not None
            path = self._known[operation][1].format(**names)
            again = self._api.get(path, if_none_match=answer.headers["etag"])
            self.seen.add((operation, again.status))

    def _names(self) -> None:
        self.send("create_resource_class")
        self.send("rename_resource_class", change={"name": "CUSTOM_SILVER"}, name="CUSTOM_GOLD")
        self.send("ensure_resource_class", name="CUSTOM_SILVER")
        self.send("ensure_resource_class", name="CUSTOM_SILVER")
        self.send("show_resource_class", name="CUSTOM_SILVER")
        self.send("list_resource_classes")
        self.send("delete_resource_class", name="CUSTOM_SILVER")
        self.send("ensure_trait", name="CUSTOM_X")
        self.send("ensure_trait", name="CUSTOM_X")
        self.send("show_trait", name="CUSTOM_X")
        self.send("list_traits", "?name=startswith:CUSTOM&associated=false")

    def _provider(self) -> None:
        self.send("create_resource_provider")
        self.send("list_resource_providers", "?name=host-1")
        self.send("show_resource_provider")
        self.send("update_resource_provider")
        self._adoption()
        self.send("update_tree", provider="compute-1")
        self.send("update_tree", change={"providers": []}, provider="compute-1")
        self.send("create_inventory")
        self.send("replace_inventories", change=self._generation)
        self.send("replace_inventory", change=self._generation)
        self.send("show_inventory")
        self.send("delete_inventory")
        self.send("list_inventories")
        self.send("replace_inventories", change=self._with_memory())
        changed = self._generation if self._version >= (1, 19) else None
        self.send("replace_provider_aggregates", change=changed)
        self.send("list_provider_aggregates")
        self.send("replace_provider_traits", change=self._generation)
        self.send("list_provider_traits")

    def _adoption(self) -> None:
        self._api.post("/resource_providers", {"name": "host-2", "uuid": OTHER})
        self.send("rename_provider", change={"name": "host-3"}, provider=OTHER)
        self.send("merge_provider", change={"into": PROVIDER}, provider=OTHER)
        self.send("adopt_provider", change={"uuid": OTHER}, provider=PROVIDER)
        self.send("adopt_provider", change={"uuid": PROVIDER}, provider=OTHER)

    def _with_memory(self) -> dict[str, Any]:
        return {"inventories": {"VCPU": {"total": 64}, "MEMORY_MB": {"total": 65536}}} | (
            self._generation
        )

    def _allocations(self) -> None:
        query = "resources=VCPU:4,MEMORY_MB:8192"
        for operation in ("list_allocation_candidates", "list_extended_candidates", "explain"):
            self.send(operation, f"?{query}")
        self.send("show_capacity", f"?{query}&by=root")
        self.send("show_fragmentation", f"?ask={quote(query)}")
        self.send("list_overview", f"?resource_class=VCPU&fits={quote(query)}&group_by=aggregate")
        self.send("show_exporter")
        self.send("replace_allocations")
        self.send("show_allocations")
        self.send("show_consumer")
        self.send("run_audit")
        self.send("list_provider_allocations")
        self.send("show_provider_usages")
        project = self._api.get(f"/allocations/{CONSUMER}").json.get("project_id", "nowhere")
        self.send("show_usages", f"?project_id={project}")
        self.send("delete_allocations")
        self.send("replace_allocations_of_several")
        if self._version >= (1, 30):
            self.send("delete_allocations")
            self.send("reshape", change={"inventories": {PROVIDER: self._with_memory()}})
            self._api.delete(f"/allocations/{CONSUMER}")

    def _rest(self) -> None:
        """The operations that write nothing and that no step names, with all that they require."""
        asking = {route.id for route in ROUTES if not route.writes}
        for operation in asking - {name for name, _ in self.seen}:
            _, _, content = self._known.get(operation, ("", "", {}))
            parameters = content.get("parameters", ())
            required = {
                parameter["name"]: parameter["example"]
                for parameter in parameters
                if parameter.get("in") == "query" and parameter["required"]
            }
            self.send(operation, f"?{urlencode(required)}")

    def _removal(self) -> None:
        self._api.delete(f"/allocations/{CONSUMER}")
        self.send("delete_inventories")
        self.send("delete_provider_traits")
        self.send("delete_trait", name="CUSTOM_X")
        self.send("delete_resource_provider")
