"""`/roost/trees`: whole trees, as the Placement API shows their providers one by one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from roost.api.extensions.ledger import trees as tree_routes
from roost.client.tree_file import parse_tree_file
from roost.service.questions import trees as tree_questions
from roost.service.questions.trees import StoredFacts
from roost.store.database import Database
from support.api_client import Answer, ApiClient, in_process_client
from support.store.bulk_rows import write_providers
from support.worlds.notation import aggregate_uuid, provider_uuid
from support.worlds.world import build_world, claim

on_sqlite = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)

LINES = "application/x-ndjson"
# A host with two NUMA nodes, one of them with a device; a flat host; two pools that lend to them;
# a pool that lends to no tree.
WORLD = (
    "H(DISK 40 reserved 3, T1), N1<H(VCPU 8 ratio 1.5 used 2, MEM 4 step 2), D<N1(GOLD 1),"
    " N2<H(VCPU 8 min 2 max 4 used 5, T2, agg B), G(VCPU 4, agg A B),"
    " *P(DISK 90 used 30, agg A), *Q(DISK 70, T3, agg B C), *R(DISK 10, agg C2)"
)


def page(api: ApiClient, **parameters: str) -> dict[str, Any]:
    answer = api.get(f"/roost/trees?{urlencode(parameters)}")
    assert answer.status == 200, answer.body
    body: dict[str, Any] = answer.json
    return body


def lines(api: ApiClient, **parameters: str) -> list[dict[str, Any]]:
    answer = api.get(f"/roost/trees?{urlencode(parameters)}", accept=LINES)
    assert (answer.status, answer.headers["content-type"]) == (200, LINES), answer.body
    return [json.loads(line) for line in answer.body.splitlines()]


def pages(api: ApiClient, **parameters: str) -> list[list[dict[str, Any]]]:
    """The trees of all pages, page by page."""
    found = [page(api, **parameters)]
    while found[-1]["next"] is not None:
        found.append(page(api, **parameters, marker=found[-1]["next"]))
    return [each["trees"] for each in found]


def root_names(trees: Sequence[dict[str, Any]]) -> set[str]:
    return {tree["providers"][0]["name"] for tree in trees}


def tree_of(api: ApiClient, reference: str) -> dict[str, Any]:
    answer = api.get(f"/roost/trees/{quote(reference, safe='')}")
    assert answer.status == 200, answer.body
    tree: dict[str, Any] = answer.json
    return tree


def by_name(providers: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {provider["name"]: provider for provider in providers}


def told_by_placement(api: ApiClient, name: str) -> dict[str, Any]:
    """What the Placement API says of a provider, in the words of a tree; the parent by uuid."""
    path = f"/resource_providers/{provider_uuid(name)}"
    provider = api.get(path).json
    parent = provider["parent_provider_uuid"]
    return {
        "name": provider["name"],
        "uuid": provider["uuid"],
        **(
            {}
            if parent is None
            else {"parent": api.get(f"/resource_providers/{parent}").json["name"]}
        ),
        "generation": provider["generation"],
        "traits": sorted(api.get(f"{path}/traits").json["traits"]),
        "aggregates": sorted(api.get(f"{path}/aggregates").json["aggregates"]),
        "inventories": api.get(f"{path}/inventories").json["inventories"],
        "usages": api.get(f"{path}/usages").json["usages"],
        "owners": {},
    }


def refusal(answer: Answer, status: int) -> str:
    assert answer.status == status, answer.body
    return answer.detail


def test_a_tree_has_all_that_placement_says_of_its_providers(api: ApiClient) -> None:
    build_world(api, WORLD)
    tree = tree_of(api, "H")
    assert tree["providers"][0]["name"] == "H"
    assert by_name(tree["providers"]) == {
        name: told_by_placement(api, name) for name in ("H", "N1", "N2", "D")
    }
    assert tree["sharing_providers"] == [told_by_placement(api, "Q")]


def test_a_tree_has_the_sharing_providers_of_other_trees_that_lend_to_it(api: ApiClient) -> None:
    build_world(api, WORLD)
    lenders = {
        tree["providers"][0]["name"]: set(by_name(tree["sharing_providers"]))
        for tree in page(api)["trees"]
    }
    assert lenders == {"H": {"Q"}, "G": {"P", "Q"}, "P": set(), "Q": set(), "R": set()}


def test_pools_of_one_aggregate_lend_to_each_other_and_a_child_that_lends_has_no_parent(
    api: ApiClient,
) -> None:
    build_world(api, "H(VCPU 1, agg A), X(), *P<X(DISK 1, agg A), *Q(DISK 1, agg A)")
    (pool,) = (each for each in tree_of(api, "H")["sharing_providers"] if each["name"] == "P")
    assert pool == {
        key: value for key, value in told_by_placement(api, "P").items() if key != "parent"
    }
    assert set(by_name(tree_of(api, "P")["sharing_providers"])) == {"Q"}
    assert set(by_name(tree_of(api, "Q")["sharing_providers"])) == {"P"}


def test_claims_and_changes_are_seen_at_once(api: ApiClient) -> None:
    build_world(api, WORLD)
    before = by_name(tree_of(api, "H")["providers"])["N1"]
    claim(api, "N1", "VCPU", 3)
    path = f"/resource_providers/{provider_uuid('N1')}"
    generation = api.get(path).json["generation"]
    body = {"traits": ["CUSTOM_T3"], "resource_provider_generation": generation}
    assert api.put(f"{path}/traits", body).status == 200
    after = by_name(tree_of(api, "H")["providers"])["N1"]
    assert (after["usages"]["VCPU"], after["traits"]) == (5, ["CUSTOM_T3"])
    assert after["generation"] > before["generation"]
    assert after == told_by_placement(api, "N1")


def test_the_providers_of_a_tree_are_a_tree_file(api: ApiClient) -> None:
    build_world(api, WORLD)
    providers = tree_of(api, "H")["providers"]
    declared = [
        {key: value for key, value in each.items() if key not in ("generation", "usages", "owners")}
        for each in providers
    ]
    content = json.dumps({"owner": "lab", "providers": declared})
    found = parse_tree_file(content, "h.json")
    assert {each.uuid: each.name for each in found.declaration.providers} == {
        each["uuid"]: each["name"] for each in providers
    }


def test_the_uuid_and_the_name_of_any_provider_lead_to_its_tree(api: ApiClient) -> None:
    build_world(api, WORLD)
    tree = tree_of(api, "H")
    for name in ("H", "N1", "D"):
        assert tree_of(api, name) == tree
        assert tree_of(api, provider_uuid(name)) == tree
        assert tree_of(api, provider_uuid(name).upper()) == tree


def test_a_list_has_each_tree_as_it_is_shown_alone(api: ApiClient) -> None:
    build_world(api, WORLD)
    found = page(api)
    roots = [tree["providers"][0]["uuid"] for tree in found["trees"]]
    assert roots == sorted(map(provider_uuid, "HGPQR"))
    assert found["trees"] == [tree_of(api, root) for root in roots]
    assert found["next"] is None
    assert found["cursor"]


def test_lines_have_the_trees_of_all_pages(api: ApiClient) -> None:
    build_world(api, WORLD)
    found = pages(api, page_limit="2")
    assert [len(each) for each in found] == [2, 2, 1]
    assert list(chain(*found)) == lines(api) == page(api)["trees"]


def test_a_tree_that_goes_moves_no_page(api: ApiClient) -> None:
    build_world(api, "A(), B(), C(), D()")
    everything = page(api)["trees"]
    first = page(api, page_limit="2")
    gone = first["trees"][1]["providers"][0]["uuid"]
    assert api.delete(f"/resource_providers/{gone}").status == 204
    assert page(api, marker=first["next"])["trees"] == everything[2:]


@pytest.mark.parametrize(
    ("parameters", "roots"),
    [
        ({"name": "H"}, "H"),
        ({"name": "N1"}, ""),
        ({"name": "*"}, "HGPQR"),
        ({"trait": "CUSTOM_T2"}, "H"),
        ({"trait": "CUSTOM_T1", "name": "G"}, ""),
        ({"trait": "MISC_SHARES_VIA_AGGREGATE"}, "PQR"),
        ({"aggregate": aggregate_uuid("B")}, "HGQ"),
        ({"aggregate": aggregate_uuid("B").upper(), "trait": "CUSTOM_T3"}, "Q"),
        ({"aggregate": aggregate_uuid("Z")}, ""),
        ({"name": "", "trait": "", "aggregate": ""}, "HGPQR"),
    ],
)
@on_sqlite
def test_filters_leave_trees_out(api: ApiClient, parameters: dict[str, str], roots: str) -> None:
    build_world(api, WORLD)
    assert root_names(page(api, **parameters)["trees"]) == set(roots)
    assert root_names(lines(api, **parameters)) == set(roots)


def test_an_empty_cloud_has_no_trees(api: ApiClient) -> None:
    assert (page(api)["trees"], lines(api)) == ([], [])


@on_sqlite
@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        (LINES, LINES),
        (f"application/json;q=0.5, {LINES}", LINES),
        (f"application/json, {LINES}", "application/json"),
        ("*/*", "application/json"),
        ("application/*", "application/json"),
    ],
)
def test_a_client_that_prefers_lines_gets_lines(
    api: ApiClient, accept: str, media_type: str
) -> None:
    assert api.get("/roost/trees", accept=accept).headers["content-type"] == media_type


@on_sqlite
def test_other_media_types_are_refused(api: ApiClient) -> None:
    sentence = refusal(api.get("/roost/trees", accept="text/csv"), 406)
    assert "Only application/json and application/x-ndjson are provided" in sentence
    sentence = refusal(api.get("/roost/trees/H", accept=LINES), 406)
    assert "Only application/json is provided" in sentence


@on_sqlite
@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("page_limit=0", "page_limit is '0'. Send a number from 1 to 1000."),
        ("page_limit=1001", "page_limit is '1001'. Send a number from 1 to 1000."),
        ("marker=%C3%A4", "marker is not from an answer of this server. Send its `next`."),
        ("aggregate=rack", "aggregate is 'rack'. Send the uuid of an aggregate."),
        ("trait=CUSTOM_NONE", "No such trait(s): CUSTOM_NONE."),
        ("names=a", "'names' is no parameter of this route. Leave it out: the route takes name,"),
        ("name=a&name=b", "name"),
    ],
)
def test_bad_parameters_are_refused_with_a_reason(
    api: ApiClient, query: str, sentence: str
) -> None:
    assert sentence in refusal(api.get(f"/roost/trees?{query}"), 400)


@on_sqlite
@pytest.mark.parametrize("name", ["page_limit", "marker"])
def test_lines_have_no_pages(api: ApiClient, name: str) -> None:
    sentence = refusal(api.get(f"/roost/trees?{name}=1", accept=LINES), 400)
    assert f"{name} is for pages, and lines have none. Leave it out." in sentence


def test_an_unknown_provider_is_not_found(api: ApiClient) -> None:
    for reference in ("nowhere", provider_uuid("nowhere")):
        answer = api.get(f"/roost/trees/{reference}")
        assert f"No provider has the uuid or name '{reference}'." in refusal(answer, 404)
        assert answer.error["code"] == "roost.no_such_provider"
    assert "'deep' is no parameter" in refusal(api.get("/roost/trees/nowhere?deep=1"), 400)


@on_sqlite
def test_large_trees_make_short_pages(api: ApiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    build_world(api, WORLD)
    everything = page(api)["trees"]
    monkeypatch.setattr(tree_routes, "_PROVIDERS_OF_PAGE", 5)
    monkeypatch.setattr(tree_routes, "_PROVIDERS_AT_ONCE", 2)
    found = pages(api)
    for trees in found:
        sizes = [len(tree["providers"]) + len(tree["sharing_providers"]) for tree in trees]
        assert len(trees) == 1 or sum(sizes) <= 5
    assert 1 < len(found) < len(everything)
    assert list(chain(*found)) == lines(api) == everything


def test_many_trees_come_in_pieces(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree_routes, "AT_ONCE_MAX", 100)
    monkeypatch.setattr(tree_routes, "_PROVIDERS_AT_ONCE", 50)
    database.write_at_once(write_providers, range(120), total=8)
    api = in_process_client(database, tmp_path)
    found = lines(api)
    assert len(found) == 120
    assert found == list(chain(*pages(api, page_limit="50")))
    assert "content-length" not in api.get("/roost/trees", accept=LINES).headers


@on_sqlite
def test_a_generation_is_never_younger_than_what_the_answer_shows(
    api: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a writer that sends the generation back would undo a change that it has not seen."""
    build_world(api, "H(VCPU 4)")
    path = f"/resource_providers/{provider_uuid('H')}"
    read = tree_questions.facts_of

    def read_before_a_change(connection: Any, ids: Sequence[int]) -> dict[int, StoredFacts]:
        found = read(connection, ids)
        body = {"traits": ["CUSTOM_T1"], "resource_provider_generation": found[ids[0]].generation}
        assert api.put(f"{path}/traits", body).status == 200
        return found

    before = api.get(path).json["generation"]
    monkeypatch.setattr(tree_routes, "facts_of", read_before_a_change)
    (host,) = tree_of(api, "H")["providers"]
    assert (host["traits"], host["generation"]) == (["CUSTOM_T1"], before)


@on_sqlite
def test_a_provider_that_comes_while_a_tree_is_read_is_in_the_answer(
    api: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_world(api, "H(VCPU 4)")
    read = tree_questions.facts_of
    reads: list[int] = []

    def read_before_a_birth(connection: Any, ids: Sequence[int]) -> dict[int, StoredFacts]:
        found = read(connection, ids)
        reads.append(len(ids))
        if len(reads) == 1:
            body = {"name": "N", "parent_provider_uuid": provider_uuid("H")}
            assert api.post("/resource_providers", body).status == 200
        return found

    monkeypatch.setattr(tree_routes, "facts_of", read_before_a_birth)
    assert set(by_name(tree_of(api, "H")["providers"])) == {"H", "N"}
    assert reads == [1, 1]


@on_sqlite
def test_trees_that_grow_faster_than_they_are_read_are_a_conflict(
    api: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_world(api, "H(VCPU 4)")
    read = tree_questions.facts_of

    def read_before_each_birth(connection: Any, ids: Sequence[int]) -> dict[int, StoredFacts]:
        found = read(connection, ids)
        body = {"name": f"N{ids[0]}", "parent_provider_uuid": provider_uuid("H")}
        assert api.post("/resource_providers", body).status == 200
        return found

    monkeypatch.setattr(tree_routes, "facts_of", read_before_each_birth)
    answer = api.get("/roost/trees")
    assert "Providers came to the trees" in refusal(answer, 409)
    assert answer.error["code"] == "placement.concurrent_update"
