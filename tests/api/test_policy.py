"""The permissions of callers, by default and by the operator's policy file."""

from __future__ import annotations

import json
import os
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from roost.api.http.requests import Caller
from roost.api.policy.policy import Policy
from roost.api.routes import ROUTES
from roost.api.routing import Route
from roost.configuration.settings import ConfigurationError
from roost.store.database import Database
from support.api_client import Answer, ApiClient, in_process_client, settings_for
from support.fifos import fifo_instead_of

pytestmark = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)

PROVIDER = "c0ffee00-0000-0000-0000-000000000001"
CONSUMER = "c0ffee00-0000-0000-0000-00000000c001"
PAGES = {"/ui", "/ui/", "/ui/{page}", "/ui/static/{file}"}
UNGUARDED = {"/", "", "/healthz", "/readyz", "/metrics"} | PAGES

# The rules of released routes, by the names that operators have in their policy files.
RULES = {
    ("GET", "/resource_providers"): "resource_providers:list",
    ("POST", "/resource_providers"): "resource_providers:create",
    ("GET", "/resource_providers/{uuid}"): "resource_providers:show",
    ("PUT", "/resource_providers/{uuid}"): "resource_providers:update",
    ("DELETE", "/resource_providers/{uuid}"): "resource_providers:delete",
    ("GET", "/resource_classes"): "resource_classes:list",
    ("POST", "/resource_classes"): "resource_classes:create",
    ("GET", "/resource_classes/{name}"): "resource_classes:show",
    ("PUT", "/resource_classes/{name}"): "resource_classes:update",
    ("DELETE", "/resource_classes/{name}"): "resource_classes:delete",
    ("GET", "/resource_providers/{uuid}/inventories"): "resource_providers:inventories:list",
    ("POST", "/resource_providers/{uuid}/inventories"): "resource_providers:inventories:create",
    ("PUT", "/resource_providers/{uuid}/inventories"): "resource_providers:inventories:update",
    ("DELETE", "/resource_providers/{uuid}/inventories"): "resource_providers:inventories:delete",
    ("GET", "/resource_providers/{uuid}/inventories/{resource_class}"): (
        "resource_providers:inventories:show"
    ),
    ("PUT", "/resource_providers/{uuid}/inventories/{resource_class}"): (
        "resource_providers:inventories:update"
    ),
    ("DELETE", "/resource_providers/{uuid}/inventories/{resource_class}"): (
        "resource_providers:inventories:delete"
    ),
    ("GET", "/resource_providers/{uuid}/aggregates"): "resource_providers:aggregates:list",
    ("PUT", "/resource_providers/{uuid}/aggregates"): "resource_providers:aggregates:update",
    ("GET", "/resource_providers/{uuid}/usages"): "resource_providers:usages",
    ("GET", "/usages"): "usages",
    ("GET", "/traits"): "traits:list",
    ("GET", "/traits/{name}"): "traits:show",
    ("PUT", "/traits/{name}"): "traits:update",
    ("DELETE", "/traits/{name}"): "traits:delete",
    ("GET", "/resource_providers/{uuid}/traits"): "resource_providers:traits:list",
    ("PUT", "/resource_providers/{uuid}/traits"): "resource_providers:traits:update",
    ("DELETE", "/resource_providers/{uuid}/traits"): "resource_providers:traits:delete",
    ("POST", "/allocations"): "allocations:manage",
    ("GET", "/allocations/{consumer}"): "allocations:list",
    ("PUT", "/allocations/{consumer}"): "allocations:update",
    ("DELETE", "/allocations/{consumer}"): "allocations:delete",
    ("GET", "/resource_providers/{uuid}/allocations"): "resource_providers:allocations:list",
    ("GET", "/allocation_candidates"): "allocation_candidates:list",
    ("POST", "/reshaper"): "reshaper:reshape",
    ("GET", "/roost/resilience"): "resilience:show",
    ("GET", "/roost/server"): "server:show",
    ("GET", "/roost/openapi.json"): "openapi:show",
    ("GET", "/roost/explain"): "explain:show",
    ("GET", "/roost/capacity"): "capacity:show",
    ("GET", "/roost/fragmentation"): "fragmentation:show",
    ("GET", "/roost/overview"): "overview:list",
    ("GET", "/roost/exporter"): "exporter:show",
    ("POST", "/roost/whatif"): "whatif:ask",
    ("GET", "/roost/candidates"): "candidates:list",
    ("GET", "/roost/trees"): "trees:list",
    ("GET", "/roost/trees/{provider}"): "trees:show",
    ("GET", "/roost/changes"): "changes:list",
}
GUARDED = [route for route in ROUTES if route.path not in UNGUARDED]


def described(route: Route) -> str:
    return f"{route.method} {route.path} since {route.since}"


def use(client: ApiClient, route: Route, **headers: str) -> Answer:
    """Request a route in the last version that knows the route, with an empty body."""
    path = route.path.format(
        uuid=PROVIDER,
        provider=PROVIDER,
        consumer=CONSUMER,
        name="CUSTOM_GOLD",
        resource_class="VCPU",
        page="tree",
        file="main.js",
    )
    body: dict[str, str] | None = {} if route.takes_json else None
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return client.at(str(route.until)).request(route.method, path, body, sent)


def configuration(directory: Path, new_defaults: bool) -> str:
    return (
        "[api]\nauth_strategy = noauth2\n"
        f"[oslo_policy]\nenforce_new_defaults = {new_defaults}\n"
        f"policy_file = {directory / 'policy.yaml'}\n"
    )


@pytest.fixture
def modern(database: Database, tmp_path: Path) -> ApiClient:
    """The API with the defaults of current releases."""
    return in_process_client(database, tmp_path, configuration(tmp_path, new_defaults=True))


def test_the_root_the_pages_and_what_programs_watch_need_no_token(api: ApiClient) -> None:
    stranger = replace(api, token=None)
    answered = {route.path for route in ROUTES if use(stranger, route).status != 401}
    assert answered == UNGUARDED


@pytest.mark.parametrize("route", GUARDED, ids=described)
def test_a_caller_without_roles_is_refused_with_the_name_of_the_rule(
    api: ApiClient, route: Route
) -> None:
    answer = use(api, route, x_roles="")
    assert answer.status == 403
    prefix = "roost" if route.path.startswith("/roost/") else "placement"
    released = RULES.get((route.method, route.path))
    rule = route.rule if released is None else f"{prefix}:{released}"
    assert str(rule).startswith(f"{prefix}:")
    assert f"Policy does not allow {rule} to be performed." in answer.detail


@pytest.mark.parametrize("route", GUARDED, ids=described)
@pytest.mark.parametrize("role", ["admin", "service"])
def test_administrators_and_services_may_do_everything_under_the_legacy_defaults(
    api: ApiClient, route: Route, role: str
) -> None:
    assert use(api, route, x_roles=role).status != 403


def may(client: ApiClient, role: str) -> set[str]:
    """The rules that let a caller with this role pass."""
    return {str(route.rule) for route in GUARDED if use(client, route, x_roles=role).status != 403}


def test_services_may_do_everything_with_new_defaults(modern: ApiClient) -> None:
    assert may(modern, "service") == {str(route.rule) for route in GUARDED}


def test_administrators_may_do_everything_but_reshape_with_new_defaults(
    modern: ApiClient,
) -> None:
    everything = {str(route.rule) for route in GUARDED}
    assert everything - may(modern, "admin") == {"placement:reshaper:reshape"}


@pytest.mark.parametrize("role", ["reader", "member", "manager"])
@pytest.mark.parametrize("new_defaults", [True, False])
def test_other_roles_may_do_nothing(
    database: Database, tmp_path: Path, role: str, new_defaults: bool
) -> None:
    client = in_process_client(database, tmp_path, configuration(tmp_path, new_defaults))
    assert may(client, role) == set()


@pytest.mark.parametrize("new_defaults", [True, False])
def test_readers_see_the_usages_of_their_own_project_only(
    database: Database, tmp_path: Path, new_defaults: bool
) -> None:
    client = in_process_client(database, tmp_path, configuration(tmp_path, new_defaults))
    reader = replace(client, token="ann:lab")
    assert reader.get("/usages?project_id=lab", x_roles="reader").status == 200
    assert reader.get("/usages?project_id=office", x_roles="reader").status == 403
    assert reader.get("/usages?project_id=lab", x_roles="member").status == 403


def test_administrators_see_the_usages_of_every_project(modern: ApiClient) -> None:
    assert modern.get("/usages?project_id=lab").status == 200


@pytest.mark.parametrize(
    "query",
    [
        "",
        "project_id=",
        "project_id=lab&project_id=office",
        "user_id=ann",
        "project_id=LAB",
        "PROJECT_ID=lab",
    ],
)
def test_a_reader_sees_no_other_project_by_any_query(modern: ApiClient, query: str) -> None:
    reader = replace(modern, token="ann:lab")
    assert reader.get(f"/usages?{query}", x_roles="reader").status == 403


def test_a_reader_without_project_sees_no_usages(modern: ApiClient) -> None:
    scoped = {"x_roles": "reader", "openstack_system_scope": "all"}
    assert modern.get("/usages", **scoped).status == 403


# Scope: every rule has the scope type project.


@pytest.mark.parametrize(
    "header",
    [{"openstack_system_scope": "all"}, {"x_domain_id": "default"}],
    ids=["system", "domain"],
)
@pytest.mark.parametrize("new_defaults", [True, False])
@pytest.mark.parametrize("role", ["admin", "service"])
def test_system_and_domain_scoped_callers_are_refused_whatever_their_roles(
    database: Database, tmp_path: Path, *, header: dict[str, str], new_defaults: bool, role: str
) -> None:
    client = in_process_client(database, tmp_path, configuration(tmp_path, new_defaults))
    answer = client.get("/resource_providers", x_roles=role, **header)
    assert answer.status == 403
    assert answer.detail.split("\n\n")[1].strip() == "placement:resource_providers:list"


@pytest.mark.parametrize("route", GUARDED, ids=described)
def test_scope_is_checked_on_every_route(api: ApiClient, route: Route) -> None:
    answer = use(api, route, openstack_system_scope="all")
    assert answer.status == 403
    assert answer.detail.split("\n\n")[1].strip() == route.rule


# The policy file.


@pytest.mark.parametrize("rule", sorted({str(route.rule) for route in GUARDED}))
def test_each_rule_can_be_given_to_another_role_alone(
    database: Database, tmp_path: Path, rule: str
) -> None:
    policy = json.dumps({rule: "role:operator"})
    client = in_process_client(database, tmp_path, policy=policy)
    assert may(client, "operator") == {rule}
    everything = {str(route.rule) for route in GUARDED}
    assert may(client, "admin") == everything - {rule}


@pytest.mark.parametrize(
    ("policy", "role", "status"),
    [
        ({"admin_or_service_api": "role:operator"}, "operator", 200),
        ({"admin_or_service_api": "role:operator"}, "service", 403),
        ({"admin_api": "role:chief"}, "chief", 200),
        ({"placement:resource_providers:list": "@"}, "", 200),
        ({"placement:resource_providers:list": "!"}, "admin", 403),
        ({"placement:resource_providers:list": ""}, "", 200),
        ({"own": "role:a", "placement:resource_providers:list": "rule:own"}, "a", 200),
        ({"own": "role:a", "placement:resource_providers:list": "rule:own"}, "admin", 403),
        ({"placement:resource_providers:list": "role:a and not role:b"}, "a,b", 403),
        ({"placement:resource_providers:list": "user_id:ann"}, "", 403),
        ({"placement:resource_providers:list": "project_id:%(project_id)s"}, "", 200),
    ],
)
def test_the_policy_file_overrides_base_rules_and_rules(
    database: Database, tmp_path: Path, policy: dict[str, str], role: str, status: int
) -> None:
    client = in_process_client(database, tmp_path, policy=json.dumps(policy))
    assert client.get("/resource_providers", x_roles=role).status == status


def test_a_policy_file_may_be_yaml_with_comments(database: Database, tmp_path: Path) -> None:
    policy = '# Ours\n"placement:resource_providers:list": "role:operator"\n'
    client = in_process_client(database, tmp_path, policy=policy)
    assert client.get("/resource_providers", x_roles="operator").status == 200


def test_the_target_of_a_rule_is_the_callers_own_project(
    database: Database, tmp_path: Path
) -> None:
    policy = {"placement:resource_providers:list": "project_id:lab and user_id:ann"}
    client = in_process_client(database, tmp_path, policy=json.dumps(policy))
    assert replace(client, token="ann:lab").get("/resource_providers").status == 200
    assert replace(client, token="ann:office").get("/resource_providers").status == 403
    assert replace(client, token="bob:lab").get("/resource_providers").status == 403


@pytest.mark.parametrize(
    "policy", ["{", '{"placement:resource_providers:list": "rule:nowhere"}', "- a\nb: c"]
)
def test_a_broken_policy_file_stops_the_service_from_starting(
    database: Database, tmp_path: Path, policy: str
) -> None:
    with pytest.raises(ConfigurationError, match=r"policy\.yaml"):
        in_process_client(database, tmp_path, policy=policy)


@pytest.mark.parametrize("rule", ["placement:resource_providers:list", "admin_api", "unused"])
@pytest.mark.parametrize("value", ["null", "", "~", "false", "0", "{}", "{a: b}"])
def test_an_invalid_rule_stops_the_service_from_starting_and_is_named(
    database: Database, tmp_path: Path, rule: str, value: str
) -> None:
    with pytest.raises(ConfigurationError, match=rf"policy\.yaml.*the rule {rule} is "):
        in_process_client(database, tmp_path, policy=f'"{rule}": {value}\n')


def test_an_invalid_rule_of_the_policy_directory_is_named_as_well(
    database: Database, tmp_path: Path
) -> None:
    extra = tmp_path / "extra"
    extra.mkdir()
    (extra / "one.yaml").write_text('"placement:traits:list": null\n')
    usual = configuration(tmp_path, new_defaults=False)
    with pytest.raises(ConfigurationError, match=r"the rule placement:traits:list is null"):
        in_process_client(database, tmp_path, f"{usual}policy_dirs = {extra}\n")


# The service remembers decisions, within bounds.


def growth(ask: Callable[[int], None], times: int) -> int:
    """The bytes of memory that so many calls of `ask` add."""
    ask(0)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for number in range(1, times):
            ask(number)
        return tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "role",
    ["r" * 50_000, ",".join("r" * 900)],
    ids=["long", "many"],
)
@pytest.mark.slow
def test_callers_with_ever_new_roles_do_not_fill_the_memory(api: ApiClient, role: str) -> None:
    def ask(number: int) -> None:
        assert api.get("/traits", x_roles=f"{number},{role}").status == 403

    assert growth(ask, 400) < 2_000_000


def test_callers_with_ever_new_names_do_not_fill_the_memory(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("roost.api.policy.policy._DECISIONS_BYTES", 100_000)
    policy = Policy(settings_for(database, tmp_path).oslo)

    def ask(number: int) -> None:
        caller = Caller(user=f"user {number}", project="p" * 200, roles=("admin",))
        policy.authorize("placement:traits:list", caller, f"project {number}")

    assert growth(ask, 2000) < 200_000


class Interrupted(str):
    """A name whose second look-up lets another thread run."""

    __slots__ = ("look_ups", "turn")
    look_ups: int
    turn: Callable[[], None]

    def __hash__(self) -> int:
        self.look_ups += 1
        if self.look_ups == 2:
            self.turn()
        return super().__hash__()


def test_a_decision_that_another_thread_pushes_out_meanwhile_is_made_again(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The memory holds one decision.
    monkeypatch.setattr("roost.api.policy.policy._DECISIONS_BYTES", 1000)
    policy = Policy(settings_for(database, tmp_path).oslo)

    def ask(caller: Caller) -> None:
        policy.authorize("placement:traits:list", caller, "lab")

    user = Interrupted("ann")
    user.turn = lambda: None
    user.look_ups = 0
    ask(Caller(user=user, roles=("admin",)))
    user.turn = lambda: ask(Caller(user="bob", roles=("admin",)))
    user.look_ups = 0
    ask(Caller(user=user, roles=("admin",)))


# The policy file, changed while the service runs.


def rewrite(path: Path, policy: Any) -> None:
    """Write a file with a later time, even if the clock of the file system is coarse."""
    before = path.stat().st_mtime_ns if path.exists() else 0
    path.write_text(policy if isinstance(policy, str) else json.dumps(policy))
    moment = max(path.stat().st_mtime_ns, before + 1_000_000_000)
    os.utime(path, ns=(moment, moment))


@pytest.fixture
def service(database: Database, tmp_path: Path) -> ApiClient:
    """The API with a policy file that belongs to the test alone."""
    return in_process_client(database, tmp_path)


def test_a_permission_that_is_taken_away_is_gone_at_once(
    service: ApiClient, tmp_path: Path
) -> None:
    assert service.get("/resource_providers").status == 200
    rewrite(tmp_path / "policy.yaml", {"placement:resource_providers:list": "!"})
    assert service.get("/resource_providers").status == 403


def test_a_permission_that_is_given_holds_at_once(service: ApiClient, tmp_path: Path) -> None:
    assert service.get("/resource_providers", x_roles="operator").status == 403
    rewrite(tmp_path / "policy.yaml", {"placement:resource_providers:list": "role:operator"})
    assert service.get("/resource_providers", x_roles="operator").status == 200


def test_a_rule_that_is_no_longer_in_the_file_has_its_default_again(
    service: ApiClient, tmp_path: Path
) -> None:
    rewrite(tmp_path / "policy.yaml", {"placement:resource_providers:list": "!"})
    assert service.get("/resource_providers").status == 403
    rewrite(tmp_path / "policy.yaml", {})
    assert service.get("/resource_providers").status == 200


def test_a_base_rule_can_change_while_the_service_runs(service: ApiClient, tmp_path: Path) -> None:
    assert service.get("/resource_providers", x_roles="service").status == 200
    rewrite(tmp_path / "policy.yaml", {"admin_or_service_api": "role:operator"})
    assert service.get("/resource_providers", x_roles="service").status == 403
    assert service.get("/resource_providers", x_roles="operator").status == 200


def test_a_file_that_breaks_while_the_service_runs_grants_nothing_new(
    service: ApiClient, tmp_path: Path
) -> None:
    assert service.get("/resource_providers", x_roles="").status == 403
    rewrite(tmp_path / "policy.yaml", "{")
    for _ in range(3):
        assert service.get("/resource_providers", x_roles="").status in (403, 500, 503)


def test_a_file_that_was_broken_counts_again_when_it_is_mended(
    service: ApiClient, tmp_path: Path
) -> None:
    rewrite(tmp_path / "policy.yaml", "{")
    service.get("/resource_providers")
    rewrite(tmp_path / "policy.yaml", {"placement:resource_providers:list": "role:operator"})
    assert service.get("/resource_providers", x_roles="operator").status == 200


def test_the_former_rules_hold_while_the_file_is_broken(service: ApiClient, tmp_path: Path) -> None:
    assert service.get("/resource_providers").status == 200
    rewrite(tmp_path / "policy.yaml", "{")
    assert [service.get("/resource_providers").status for _ in range(3)] == [200, 200, 200]


def test_the_former_rules_hold_while_a_fifo_stands_in_place_of_the_file(
    service: ApiClient, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert service.get("/resource_providers").status == 200
    with fifo_instead_of(tmp_path / "policy.yaml"):
        assert [service.get("/resource_providers").status for _ in range(2)] == [200, 200]
    assert "it is no regular file" in caplog.text


def test_a_directory_of_policy_files_counts_as_well(database: Database, tmp_path: Path) -> None:
    directory = tmp_path / "policy.d"
    directory.mkdir()
    rewrite(directory / "ours.yaml", {"placement:traits:list": "role:operator"})
    client = in_process_client(
        database,
        tmp_path,
        configuration(tmp_path, new_defaults=False) + f"policy_dirs = {directory}\n",
    )
    assert client.get("/traits", x_roles="operator").status == 200
    rewrite(directory / "ours.yaml", {"placement:traits:list": "role:unused"})
    assert client.get("/traits", x_roles="operator").status == 403


def test_the_defaults_hold_without_a_policy_file(database: Database, tmp_path: Path) -> None:
    client = in_process_client(
        database,
        tmp_path,
        "[api]\nauth_strategy = noauth2\n[oslo_policy]\npolicy_file = nowhere.yaml\n",
    )
    assert client.get("/resource_providers").status == 200
    assert client.get("/resource_providers", x_roles="").status == 403
