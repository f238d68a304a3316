"""Which request wrote a change, with its user and its project: of every route that writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from roost.api.routes import ROUTES
from roost.model.identifiers import new_uuid
from roost.store.database import Database
from support.api_client import ApiClient
from support.change_feed import all_changes, claim, make_host, now, request_id
from support.store.journal import insert_change

# Questions, which have a body and write nothing.
QUESTIONS = {("POST", "/roost/whatif")}
TRAIT, CLASS = "CUSTOM_ORIGIN", "CUSTOM_ORIGINS"
# The call of a route, with its path, its body, and the kinds of its changes.
Call = tuple[str, Any, set[str]]


class World:
    """Two hosts that hold nothing, and a consumer on a third one."""

    def __init__(self, api: ApiClient) -> None:
        self.api = api
        self.empty, self.other = make_host(api, VCPU=8), make_host(api)
        self.used = make_host(api, VCPU=8)
        self.consumer, self.new = new_uuid(), new_uuid()
        claim(api, self.used, consumer=self.consumer)

    def generation(self, provider: str) -> int:
        found: int = self.api.get(f"/resource_providers/{provider}").json["generation"]
        return found

    def inventory(self, provider: str, total: int) -> dict[str, Any]:
        return {"resource_provider_generation": self.generation(provider), "total": total}

    def inventories(self, provider: str, total: int) -> dict[str, Any]:
        return {
            "resource_provider_generation": self.generation(provider),
            "inventories": {"VCPU": {"total": total}},
        }

    def allocations(self, *hosts: str, generation: int | None = None) -> dict[str, Any]:
        return {
            "allocations": {host: {"resources": {"VCPU": 1}} for host in hosts},
            "project_id": "lab",
            "user_id": "ann",
            "consumer_generation": generation,
            "consumer_type": "INSTANCE",
        }

    def make_trait(self) -> None:
        assert self.api.put(f"/traits/{TRAIT}").status in (201, 204)

    def make_class(self) -> None:
        assert self.api.put(f"/resource_classes/{CLASS}").status in (201, 204)

    def forget_names(self) -> None:
        self.api.delete(f"/traits/{TRAIT}")
        self.api.delete(f"/resource_classes/{CLASS}")


def provider_path(uuid: str, rest: str = "") -> str:
    return f"/resource_providers/{uuid}{rest}"


def delete_traits(world: World) -> Call:
    path = provider_path(world.empty, "/traits")
    body = {
        "resource_provider_generation": world.generation(world.empty),
        "traits": ["HW_CPU_X86_VMX"],
    }
    assert world.api.put(path, body).status == 200
    return path, None, {"traits"}


def put_traits(world: World) -> Call:
    generation = world.generation(world.empty)
    body = {"resource_provider_generation": generation, "traits": ["HW_CPU_X86_VMX"]}
    return provider_path(world.empty, "/traits"), body, {"traits"}


def put_aggregates(world: World) -> Call:
    generation = world.generation(world.empty)
    body = {"resource_provider_generation": generation, "aggregates": [new_uuid()]}
    return provider_path(world.empty, "/aggregates"), body, {"aggregates"}


def delete_trait(world: World) -> Call:
    world.make_trait()
    return f"/traits/{TRAIT}", None, {"trait_names"}


def delete_class(world: World) -> Call:
    world.make_class()
    return f"/resource_classes/{CLASS}", None, {"resource_classes"}


def rename_class(world: World) -> Call:
    return f"/resource_classes/{CLASS}", None, {"resource_classes"}


def reshape(world: World) -> Call:
    body = {
        "inventories": {
            world.used: world.inventories(world.used, 4),
            world.empty: world.inventories(world.empty, 9),
        },
        "allocations": {world.consumer: world.allocations(world.empty, generation=1)},
    }
    return "/reshaper", body, {"inventory", "usage"}


def audit(world: World) -> Call:
    body = {"known_consumers": [], "delete": True, "at_most_percent": 100}
    return "/roost/audit", body, {"usage"}


CALLS: dict[tuple[str, str], Callable[[World], Call]] = {
    ("POST", "/resource_classes"): lambda _: (
        "/resource_classes",
        {"name": CLASS},
        {"resource_classes"},
    ),
    ("PUT", "/resource_classes/{name}"): rename_class,
    ("DELETE", "/resource_classes/{name}"): delete_class,
    ("POST", "/resource_providers"): lambda world: (
        "/resource_providers",
        {"name": world.new, "uuid": world.new},
        {"provider_created"},
    ),
    ("DELETE", "/resource_providers/{uuid}"): lambda world: (
        provider_path(world.empty),
        None,
        {"provider_deleted"},
    ),
    ("PUT", "/resource_providers/{uuid}"): lambda world: (
        provider_path(world.empty),
        {"name": f"renamed {world.empty}"},
        {"provider_renamed"},
    ),
    ("POST", "/resource_providers/{uuid}/inventories"): lambda world: (
        provider_path(world.other, "/inventories"),
        {**world.inventory(world.other, 4), "resource_class": "VCPU"},
        {"inventory"},
    ),
    ("PUT", "/resource_providers/{uuid}/inventories"): lambda world: (
        provider_path(world.empty, "/inventories"),
        world.inventories(world.empty, 9),
        {"inventory"},
    ),
    ("DELETE", "/resource_providers/{uuid}/inventories"): lambda world: (
        provider_path(world.empty, "/inventories"),
        None,
        {"inventory"},
    ),
    ("PUT", "/resource_providers/{uuid}/inventories/{resource_class}"): lambda world: (
        provider_path(world.empty, "/inventories/VCPU"),
        world.inventory(world.empty, 9),
        {"inventory"},
    ),
    ("DELETE", "/resource_providers/{uuid}/inventories/{resource_class}"): lambda world: (
        provider_path(world.empty, "/inventories/VCPU"),
        None,
        {"inventory"},
    ),
    ("PUT", "/resource_providers/{uuid}/aggregates"): put_aggregates,
    ("PUT", "/resource_providers/{uuid}/traits"): put_traits,
    ("DELETE", "/resource_providers/{uuid}/traits"): delete_traits,
    ("PUT", "/traits/{name}"): lambda _: (f"/traits/{TRAIT}", None, {"trait_names"}),
    ("DELETE", "/traits/{name}"): delete_trait,
    ("POST", "/allocations"): lambda world: (
        "/allocations",
        {new_uuid(): world.allocations(world.empty), new_uuid(): world.allocations(world.used)},
        {"usage"},
    ),
    ("PUT", "/allocations/{consumer}"): lambda world: (
        f"/allocations/{new_uuid()}",
        world.allocations(world.empty, world.used),
        {"usage"},
    ),
    ("DELETE", "/allocations/{consumer}"): lambda world: (
        f"/allocations/{world.consumer}",
        None,
        {"usage"},
    ),
    ("POST", "/reshaper"): reshape,
    ("POST", "/roost/audit"): audit,
    ("POST", "/roost/providers/{provider}/adopt"): lambda world: (
        f"/roost/providers/{world.used}/adopt",
        {"uuid": world.new},
        {"provider_adopted"},
    ),
    ("POST", "/roost/providers/{provider}/rename"): lambda world: (
        f"/roost/providers/{world.used}/rename",
        {"name": f"renamed {world.used}"},
        {"provider_renamed"},
    ),
    ("POST", "/roost/providers/{provider}/merge"): lambda world: (
        f"/roost/providers/{world.used}/merge",
        {"into": world.empty},
        {"provider_deleted", "usage"},
    ),
    ("PUT", "/roost/trees/{provider}"): lambda world: (
        f"/roost/trees/{world.new}?owner=me",
        {"providers": [{"name": world.new, "inventories": {"VCPU": 1}}]},
        # The owner has a trait of its own.
        {"trait_names", "provider_created", "inventory", "traits"},
    ),
}


def test_all_routes_that_write_have_a_call_here() -> None:
    writing = {(route.method, route.path) for route in ROUTES if route.method != "GET"}
    assert writing - QUESTIONS == set(CALLS)


@pytest.mark.parametrize(("method", "path"), CALLS, ids=lambda part: part.replace("/", " ").strip())
def test_each_change_names_its_request_with_user_and_project(
    api: ApiClient, method: str, path: str
) -> None:
    world = World(api)
    world.forget_names()
    called, body, kinds = CALLS[method, path](world)
    since = now(api)
    # With `noauth2`, the token names the user and the project.
    answer = api.request(method, called, body, {"x-auth-token": "admin:shop"})
    assert answer.status < 300, answer.body
    changes = all_changes(api, since)
    assert {change["kind"] for change in changes} >= kinds
    origins = {(one["request_id"], one["user_id"], one["project_id"]) for one in changes}
    assert origins == {(request_id(answer), "admin", "shop")}
    world.forget_names()


def test_a_dry_run_and_a_refusal_are_no_changes(api: ApiClient) -> None:
    host = make_host(api, VCPU=8)
    since = now(api)
    dry = api.post(f"/roost/providers/{host}/rename", {"name": "never", "dry_run": True})
    assert dry.status == 200
    assert api.put(f"/allocations/{new_uuid()}", {}).status == 400
    assert all_changes(api, since) == []


def test_rows_of_an_older_version_have_no_origin(api: ApiClient, database: Database) -> None:
    host = make_host(api, VCPU=8)
    since = now(api)
    values: dict[str, Any] = {"kind": "traits", "provider_id": 999_999_999, "provider_uuid": host}
    if database.engine.dialect.name != "postgresql":
        # PostgreSQL numbers the transactions of every version.
        values["transaction_id"] = None
    database.write_at_once(insert_change, **values)
    (change,) = all_changes(api, since)
    assert change["kind"] == "traits"
    assert change["provider"]["uuid"] == host
    assert [change[name] for name in ("request_id", "user_id", "project_id")] == [None] * 3


@pytest.mark.parametrize(
    ("user", "told"),
    [("u" * 700, None), ("\u00fc" * 60, "\u00fc" * 60), ('quoted"\\', 'quoted"\\')],
    ids=["long", "accents", "quoted"],
)
def test_a_user_of_any_length_and_script_hinders_no_write(
    api: ApiClient, user: str, told: str | None
) -> None:
    host = make_host(api)
    since = now(api)
    body = {"name": f"renamed {host}"}
    headers = {"x-auth-token": f"{user}:shop", "x-roles": "admin"}
    answer = api.request("PUT", f"/resource_providers/{host}", body, headers)
    assert answer.status == 200, answer.body
    (change,) = all_changes(api, since)
    assert (change["request_id"], change["user_id"]) == (request_id(answer), told)
