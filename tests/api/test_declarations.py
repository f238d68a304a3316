"""The declarations of routes: what follows from them, and what they may not contradict."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from roost.api.handlers import aggregates, resource_classes, root, traits
from roost.api.http.json_schemas import COUNT, STRING, growing, record
from roost.api.http.microversions import Microversion
from roost.api.openapi.examples import body_example
from roost.api.policy.policy import Policy, _route_rules
from roost.api.policy.review import open_writes
from roost.api.routes import ROUTES
from roost.api.routing import QueryString, RequestParameter, Route
from roost.api.services import Services
from roost.store.database import Database
from support.api_client import ApiClient, settings_for
from support.worlds.world import build_world


def one(routes: tuple[Route, ...], id_: str) -> Route:
    (found,) = (route for route in routes if route.id == id_)
    return found


def test_two_routes_cannot_disagree_about_the_default_of_their_rule() -> None:
    rename = one(resource_classes.ROUTES, "rename_resource_class")
    ensure = one(resource_classes.ROUTES, "ensure_resource_class")
    (rule,) = _route_rules([rename, ensure])
    assert (rule.name, rule.check_str) == (rename.rule, rename.rule_default)
    with pytest.raises(ValueError, match=str(rename.rule)):
        _route_rules([rename, replace(ensure, rule_default="role:reader")])


def test_a_rule_names_each_request_that_it_is_for_once() -> None:
    rules = {rule.name: rule for rule in _route_rules(ROUTES)}
    assert list(rules) == list(dict.fromkeys(route.rule for route in ROUTES if route.rule))
    for name, rule in rules.items():
        requests = {(route.method, route.path) for route in ROUTES if route.rule == name}
        told = [(operation["method"], operation["path"]) for operation in rule.operations]
        assert sorted(told) == sorted(requests)


def test_a_route_with_a_body_takes_json_and_one_with_a_schema_gives_it() -> None:
    put = one(aggregates.ROUTES, "replace_provider_aggregates")
    assert (put.takes_json, put.gives_json) == (True, False)
    get = one(aggregates.ROUTES, "list_provider_aggregates")
    assert (get.takes_json, get.gives_json) == (False, True)
    bare = one(traits.ROUTES, "show_trait")
    assert (bare.takes_json, bare.gives_json) == (False, False)


def test_a_route_without_a_rule_answers_whatever_a_client_accepts() -> None:
    assert not any(route.gives_json for route in root.ROUTES)


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_exactly_the_routes_that_declare_it_write(
    api: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = "c0ffee00-0000-4000-8000-000000000001"
    build_world(api, "H1(VCPU 1 used 1)")
    assert api.post("/resource_providers", {"name": "host", "uuid": provider}).status == 200
    deleting = {"run_audit": {"known_consumers": [], "delete": True, "at_most_percent": 100}}

    def refuse(*_arguments: object, **_names: object) -> None:
        raise AssertionError("no transaction begins")

    monkeypatch.setattr(Services, "write", refuse)
    names = {
        "uuid": provider,
        "provider": provider,
        "consumer": provider,
        "name": "CUSTOM_X",
        "resource_class": "VCPU",
        "page": "tree",
        "file": "main.js",
    }
    writing = set()
    for route in ROUTES:
        example = None if route.body is None else body_example(route.body, route.until)
        body = deleting.get(route.id, example)
        path = route.path.format(**names)
        if api.at(str(route.until)).request(route.method, path, body).status == 500:
            writing.add(route.id)
    assert writing == {route.id for route in ROUTES if route.writes}


def test_a_parameter_is_known_from_its_first_version_on() -> None:
    query = QueryString.of(
        RequestParameter("old", "One that all versions require.", "1", COUNT, is_required=True),
        RequestParameter("new", "One that later versions know.", "x", since=Microversion(1, 7)),
    )
    assert query.names == ("old", "new")
    assert query.schemas.at(Microversion(1, 6)).document == record({"old": COUNT})
    assert query.schemas.at(Microversion(1, 7)).document == record({"old": COUNT}, {"new": STRING})


def test_a_growing_record_keeps_the_members_of_earlier_versions() -> None:
    found = growing(
        ("1.0", {"a": STRING}, {}), ("1.2", {}, {"b": COUNT}), ("1.3", {"c": COUNT}, {})
    )
    assert found == [
        ("1.0", record({"a": STRING})),
        ("1.2", record({"a": STRING}, {"b": COUNT})),
        ("1.3", record({"a": STRING, "c": COUNT}, {"b": COUNT})),
    ]


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_a_review_of_the_policy_names_the_rules_of_routes_that_write(
    database: Database, tmp_path: Path
) -> None:
    open_to_all = '{"placement:allocations:update": "@", "roost:whatif:ask": "@"}'
    (sentence,) = open_writes(Policy(settings_for(database, tmp_path, policy=open_to_all).oslo))
    assert "write: placement:allocations:update. Correct" in sentence
