"""`PUT /roost/trees/{provider}`: an owner declares a whole tree, and others keep what they have."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, urlencode
from uuid import UUID

import pytest
import sqlalchemy as sa

from roost.api.extensions.ledger import tree_body
from roost.store import tables
from roost.store.database import Database
from support.api_client import Answer, ApiClient
from support.worlds.notation import aggregate_uuid, provider_uuid
from support.worlds.world import build_world, claim

on_sqlite = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)

ROOT = "c0ffee00-0000-4000-8000-0000000000aa"
MARK = "CUSTOM_ROOST_OWNER_ME"


def put(api: ApiClient, tree: str, *providers: Any, owner: str = "me", **parameters: str) -> Answer:
    query = urlencode({"owner": owner, **parameters})
    path = f"/roost/trees/{quote(tree, safe='')}?{query}"
    return api.put(path, {"providers": list(providers)})


def declare(api: ApiClient, tree: str, *providers: Any, **parameters: str) -> dict[str, Any]:
    """The one tree of the answer to a declaration that succeeds."""
    answer = put(api, tree, *providers, **parameters)
    assert answer.status == 200, answer.body
    (found,) = answer.json["trees"]
    tree_found: dict[str, Any] = found
    return tree_found


def refused(answer: Answer, status: int, code: str | None = None) -> str:
    assert answer.status == status, answer.body
    if code is not None:
        assert answer.json["errors"][0]["code"] == code
    return answer.detail


def shown(api: ApiClient, tree: str) -> dict[str, dict[str, Any]]:
    """The providers of a tree, by name."""
    answer = api.get(f"/roost/trees/{quote(tree, safe='')}")
    assert answer.status == 200, answer.body
    return {provider["name"]: provider for provider in answer.json["providers"]}


def names(api: ApiClient) -> set[str]:
    found = api.get("/resource_providers").json["resource_providers"]
    return {provider["name"] for provider in found}


def changed(tree: dict[str, Any]) -> dict[tuple[str, str], tuple[Any, Any]]:
    """The changes of an answer, by provider and kind: before and after."""
    return {
        (change["name"], change["kind"]): (change["before"], change["after"])
        for change in tree["difference"]["changes"]
    }


def totals(provider: dict[str, Any]) -> dict[str, int]:
    return {name: fields["total"] for name, fields in provider["inventories"].items()}


class TestOneOwner:
    def test_a_tree_is_created_changed_and_withdrawn(self, api: ApiClient) -> None:
        aggregate = aggregate_uuid("A")
        numa = {"name": "h_numa0", "parent": "h", "inventories": {"VCPU": 8, "CUSTOM_GOLD": 2}}
        host = {"name": "h", "traits": ["HW_NUMA_ROOT", "CUSTOM_NEW"], "aggregates": [aggregate]}
        made = declare(api, "h", numa, host)
        assert made["tree"] == "h"
        created = [(each["name"], each["parent_name"]) for each in made["difference"]["creations"]]
        assert created == [("h", None), ("h_numa0", "h")]
        found = shown(api, "h_numa0")
        assert found["h"]["traits"] == ["CUSTOM_NEW", MARK, "HW_NUMA_ROOT"]
        assert found["h"]["aggregates"] == [aggregate]
        assert totals(found["h_numa0"]) == {"CUSTOM_GOLD": 2, "VCPU": 8}
        assert found["h_numa0"]["parent"] == "h"
        assert found["h_numa0"]["owners"] == {
            "me": {
                "created": True,
                "inventories": {"CUSTOM_GOLD": ["total"], "VCPU": ["total"]},
                "traits": [MARK],
                "aggregates": [],
            }
        }
        again = declare(api, "h", {"name": "h"}, {**numa, "inventories": {"VCPU": 9}})
        assert changed(again)["h", "aggregates"] == ([aggregate], [])
        assert changed(again)["h", "traits"][1] == [MARK]
        assert totals(shown(api, "h")["h_numa0"]) == {"VCPU": 9}
        gone = declare(api, "h")
        assert [each["name"] for each in gone["difference"]["deletions"]] == ["h_numa0", "h"]
        assert names(api) == set()

    def test_the_answer_has_the_shape_of_tree_diff(self, api: ApiClient) -> None:
        answer = put(api, ROOT, {"name": "h", "inventories": {"VCPU": 8}}, owner="Me")
        uuid_and_name = {"uuid": ROOT, "name": "h"}
        assert answer.json == {
            "owner": "me",
            "dry_run": False,
            "trees": [
                {
                    "tree": "h",
                    "difference": {
                        "creations": [{**uuid_and_name, "parent_uuid": None, "parent_name": None}],
                        "moves": [],
                        "changes": [
                            {
                                **uuid_and_name,
                                "kind": "inventory",
                                "before": {},
                                "after": {"VCPU": {"total": 8}},
                            },
                            {**uuid_and_name, "kind": "traits", "before": [], "after": [MARK]},
                        ],
                        "deletions": [],
                        "ignored": [],
                    },
                    "kept": [],
                }
            ],
            "failures": [],
            "not_begun": 0,
        }

    def test_the_same_declaration_changes_nothing(self, api: ApiClient) -> None:
        declared = {"name": "h", "inventories": {"VCPU": 8}, "traits": ["CUSTOM_A"]}
        declare(api, "h", declared)
        before = shown(api, "h")
        again = declare(api, "h", declared)
        assert not any(again["difference"].values())
        assert shown(api, "h") == before

    def test_a_dry_run_answers_the_same_and_writes_nothing(
        self, api: ApiClient, database: Database
    ) -> None:
        declared = {
            "name": "h",
            "uuid": ROOT,
            "children": [{"name": "h_0"}],
            "traits": ["CUSTOM_A"],
        }
        tried = put(api, "h", declared, dry_run="true").json
        assert names(api) == set()
        count = sa.select(sa.func.count()).select_from(tables.roost_ownership)
        assert database.read(lambda connection: connection.scalar(count)) == 0
        assert api.get("/traits/CUSTOM_A").status == 404
        done = put(api, "h", declared).json
        assert tried == {**done, "dry_run": True}

    def test_children_may_be_inside_of_their_parents(self, api: ApiClient) -> None:
        nested = {"name": "h", "children": [{"name": "a", "children": [{"name": "b"}]}]}
        declare(api, "h", nested, {"name": "c", "parent": "b"})
        parents = {name: each.get("parent") for name, each in shown(api, "h").items()}
        assert parents == {"h": None, "a": "h", "b": "a", "c": "b"}

    def test_a_child_that_comes_again_is_the_same_provider(self, api: ApiClient) -> None:
        declare(api, "h", {"name": "h", "children": [{"name": "a"}]})
        uuid = shown(api, "h")["a"]["uuid"]
        declare(api, "h", {"name": "h"})
        assert set(shown(api, "h")) == {"h"}
        declare(api, "h", {"name": "h", "children": [{"name": "a"}]})
        assert shown(api, "h")["a"]["uuid"] == uuid

    def test_what_no_owner_has_put_there_stays(self, api: ApiClient) -> None:
        build_world(api, "H(VCPU 8, T1, agg A), N<H(MEM 4)")
        before = shown(api, "H")
        declare(
            api,
            "H",
            {"name": "H", "inventories": {"VCPU": 8, "DISK_GB": 5}, "traits": ["CUSTOM_T1"]},
        )
        declare(api, "H")
        after = shown(api, "H")
        assert {name: {**each, "generation": 0} for name, each in after.items()} == {
            name: {**each, "generation": 0} for name, each in before.items()
        }

    def test_an_undeclared_field_gets_its_default_only_if_the_owner_declared_it(
        self, api: ApiClient
    ) -> None:
        build_world(api, "H(VCPU 8 ratio 4.0)")
        declare(api, "H", {"name": "H", "inventories": {"VCPU": {"total": 9, "reserved": 2}}})
        declare(api, "H", {"name": "H", "inventories": {"VCPU": 9}})
        fields = shown(api, "H")["H"]["inventories"]["VCPU"]
        assert (fields["reserved"], fields["allocation_ratio"]) == (0, 4.0)

    def test_a_provider_moves_below_its_declared_parent(self, api: ApiClient) -> None:
        first = {
            "name": "h",
            "children": [{"name": "a", "children": [{"name": "x"}]}, {"name": "b"}],
        }
        declare(api, "h", first)
        moved = {
            "name": "h",
            "children": [{"name": "b", "children": [{"name": "x"}]}, {"name": "a"}],
        }
        answer = declare(api, "h", moved)
        (move,) = answer["difference"]["moves"]
        assert (move["name"], move["parent_name"]) == ("x", "b")
        assert shown(api, "h")["x"]["parent"] == "b"

    def test_a_provider_moves_out_of_one_that_goes(self, api: ApiClient) -> None:
        declare(api, "h", {"name": "h", "children": [{"name": "a", "children": [{"name": "x"}]}]})
        declare(api, "h", {"name": "h", "children": [{"name": "x"}]})
        found = shown(api, "h")
        assert set(found) == {"h", "x"}
        assert found["x"]["parent"] == "h"

    def test_a_provider_that_no_owner_created_stays_where_it_is(self, api: ApiClient) -> None:
        build_world(api, "H(VCPU 1), A<H(VCPU 1), X<A(VCPU 1)")
        answer = declare(api, "H", {"name": "H", "children": [{"name": "X"}]})
        assert answer["kept"] == [
            "X: stays below A, though declared below H; another writer created it"
        ]
        assert shown(api, "H")["X"]["parent"] == "A"

    def test_a_tree_that_was_read_may_be_declared(self, api: ApiClient) -> None:
        build_world(api, "H(VCPU 8 used 2, T1), N<H(MEM 4, agg A), *P(DISK 9, agg A)")
        declare(api, "H", {"name": "H", "traits": ["CUSTOM_MINE"]}, owner="first")
        read = api.get("/roost/trees/H").json
        answer = api.put("/roost/trees/H?owner=second", read)
        assert answer.status == 200, answer.body
        assert not any(answer.json["trees"][0]["difference"].values())

    def test_an_older_generation_is_refused(self, api: ApiClient) -> None:
        build_world(api, "H(VCPU 8)")
        read = api.get("/roost/trees/H").json
        declare(api, "H", {"name": "H", "traits": ["CUSTOM_A"]}, owner="first")
        sentence = refused(
            api.put("/roost/trees/H?owner=second", read), 409, "placement.concurrent_update"
        )
        assert "'H' is at generation" in sentence

    def test_a_subtree_may_be_declared(self, api: ApiClient) -> None:
        build_world(api, "H(VCPU 1), N<H(VCPU 1)")
        declare(api, "H", {"name": "N", "children": [{"name": "N_0"}]})
        assert shown(api, "H")["N_0"]["parent"] == "N"

    def test_the_owner_of_a_step_by_step_client_goes_on(self, api: ApiClient) -> None:
        """Its providers have its trait, and the server has no record of it."""
        build_world(api, "H(VCPU 1), N<H(DISK 2)")
        assert api.put(f"/traits/{MARK}").status == 201
        path = f"/resource_providers/{provider_uuid('N')}"
        generation = api.get(path).json["generation"]
        body = {"traits": [MARK], "resource_provider_generation": generation}
        assert api.put(f"{path}/traits", body).status == 200
        declare(api, "H", {"name": "H", "children": [{"name": "N", "inventories": {"DISK_GB": 2}}]})
        declare(api, "H", {"name": "H"})
        assert set(shown(api, "H")) == {"H"}


class TestInUse:
    def test_providers_and_inventories_in_use_are_kept_and_told(self, api: ApiClient) -> None:
        declare(
            api,
            "h",
            {"name": "h", "uuid": ROOT, "inventories": {"VCPU": 8, "DISK_GB": 9}},
            {"name": "n", "parent": "h", "inventories": {"MEMORY_MB": 5}},
        )
        consumer = str(UUID(int=1))
        held = {
            "allocations": {ROOT: {"resources": {"VCPU": 1}}},
            "project_id": "lab",
            "user_id": "ann",
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
        }
        assert api.put(f"/allocations/{consumer}", held).status == 204
        answer = declare(api, "h")
        assert answer["kept"] == [
            "h: not deleted, it is in use",
            "h: inventory VCPU not removed, in use",
        ]
        found = shown(api, "h")
        assert set(found) == {"h"}
        assert totals(found["h"]) == {"VCPU": 8}
        assert api.delete(f"/allocations/{consumer}").status == 204
        assert declare(api, "h")["kept"] == []
        assert names(api) == set()

    def test_a_provider_with_inventory_or_children_of_others_is_kept(self, api: ApiClient) -> None:
        declare(api, "h", {"name": "h", "uuid": ROOT, "inventories": {"VCPU": 8}})
        body = {"resource_class": "DISK_GB", "total": 4}
        assert api.post(f"/resource_providers/{ROOT}/inventories", body).status == 201
        child = {"name": "foreign", "parent_provider_uuid": ROOT}
        assert api.post("/resource_providers", child).status == 200
        assert declare(api, "h")["kept"] == [
            "h: not deleted, other writers have inventory on it (DISK_GB) and there are providers "
            "below it"
        ]
        assert totals(shown(api, "h")["h"]) == {"DISK_GB": 4}


class TestSeveralOwners:
    def test_each_owner_withdraws_only_what_it_declared(self, api: ApiClient) -> None:
        declare(api, "h", {"name": "h", "traits": ["CUSTOM_A"], "inventories": {"VCPU": 4}})
        declare(
            api,
            "h",
            {"name": "h", "traits": ["CUSTOM_B"], "inventories": {"DISK_GB": 5}},
            {"name": "x", "parent": "h"},
            owner="second",
        )
        assert declare(api, "h")["kept"] == []
        found = shown(api, "h")
        assert found["h"]["traits"] == ["CUSTOM_B", "CUSTOM_ROOST_OWNER_SECOND"]
        assert totals(found["h"]) == {"DISK_GB": 5}
        assert declare(api, "h", owner="second")["kept"] == []
        assert names(api) == set()

    def test_what_two_owners_declare_stays_until_both_withdraw_it(self, api: ApiClient) -> None:
        aggregate = aggregate_uuid("A")
        both = {
            "name": "h",
            "traits": ["CUSTOM_A"],
            "inventories": {"VCPU": 4},
            "aggregates": [aggregate],
        }
        for owner in ("me", "second"):
            declare(api, "h", both, owner=owner)
        declare(api, "h")
        host = shown(api, "h")["h"]
        assert host["traits"] == ["CUSTOM_A", "CUSTOM_ROOST_OWNER_SECOND"]
        assert (totals(host), host["aggregates"]) == ({"VCPU": 4}, [aggregate])
        declare(api, "h", owner="second")
        assert names(api) == set()

    def test_a_contradiction_names_the_owner_and_force_takes_over(self, api: ApiClient) -> None:
        declare(api, "h", {"name": "h", "inventories": {"VCPU": {"total": 4, "reserved": 1}}})
        other = {"name": "h", "inventories": {"VCPU": {"total": 5}}, "traits": ["CUSTOM_B"]}
        answer = put(api, "h", other, owner="second")
        sentence = refused(answer, 409, "roost.owned_by_another")
        assert "h: inventory VCPU belongs to the owner 'me'" in sentence
        assert shown(api, "h")["h"]["traits"] == [MARK]
        declare(api, "h", other, owner="second", force="true")
        host = shown(api, "h")["h"]
        assert totals(host) == {"VCPU": 5}
        assert host["owners"]["second"]["inventories"] == {"VCPU": ["total"]}
        assert host["owners"]["me"]["inventories"] == {}

    def test_fields_that_an_owner_leaves_out_are_free_for_others(self, api: ApiClient) -> None:
        declare(api, "h", {"name": "h", "inventories": {"VCPU": 4}})
        ratio = {"name": "h", "inventories": {"VCPU": {"total": 4, "allocation_ratio": 2.0}}}
        declare(api, "h", ratio, owner="second")
        declare(api, "h", {"name": "h", "inventories": {"VCPU": 4}})
        assert shown(api, "h")["h"]["inventories"]["VCPU"]["allocation_ratio"] == 2.0
        declare(api, "h", owner="second")
        assert shown(api, "h")["h"]["inventories"]["VCPU"]["allocation_ratio"] == 1.0

    def test_the_place_of_a_provider_belongs_to_its_owner(self, api: ApiClient) -> None:
        declare(api, "h", {"name": "h", "children": [{"name": "a"}, {"name": "x"}]})
        below = {"name": "h", "children": [{"name": "a", "children": [{"name": "x"}]}]}
        sentence = refused(put(api, "h", below, owner="second"), 409, "roost.owned_by_another")
        assert "x: its place belongs to the owner 'me'" in sentence
        declare(api, "h", below, owner="second", force="true")
        assert shown(api, "h")["x"]["parent"] == "a"

    def test_ownership_follows_an_adopted_and_a_merged_provider(self, api: ApiClient) -> None:
        declare(api, "h", {"name": "h", "uuid": ROOT, "inventories": {"VCPU": 4}})
        new = ROOT.replace("aa", "bb")
        assert api.post("/roost/providers/h/adopt", {"uuid": new}).status == 200
        assert shown(api, "h")["h"]["owners"]["me"]["created"]
        assert api.post("/resource_providers", {"name": "g"}).status == 200
        assert api.post("/roost/providers/h/merge", {"into": "g"}).status == 200
        owners = shown(api, "g")["g"]["owners"]
        assert owners["me"]["inventories"] == {"VCPU": ["total"]}
        assert not owners["me"]["created"]
        declare(api, "g")
        assert shown(api, "g")["g"]["inventories"] == {}

    def test_ownership_ends_with_the_provider(self, api: ApiClient, database: Database) -> None:
        declare(api, "h", {"name": "h", "uuid": ROOT})
        assert api.delete(f"/resource_providers/{ROOT}").status == 204
        count = sa.select(sa.func.count()).select_from(tables.roost_ownership)
        assert database.read(lambda connection: connection.scalar(count)) == 0

    def test_rows_of_a_provider_that_another_service_deleted_count_for_nothing(
        self, api: ApiClient, database: Database
    ) -> None:
        declare(api, "h", {"name": "h", "uuid": ROOT})
        others = sa.update(tables.roost_ownership).values(provider_uuid=str(UUID(int=9)))
        database.write_at_once(lambda connection: connection.execute(others))
        assert shown(api, "h")["h"]["owners"] == {}
        # The trait of the owner tells that the owner created the provider.
        declare(api, "h")
        assert names(api) == set()


def body(*providers: Any, **more: Any) -> dict[str, Any]:
    return {"providers": list(providers), **more}


@on_sqlite
class TestRefusals:
    @pytest.mark.parametrize(
        ("sent", "sentence"),
        [
            ([], "[] is not of type"),
            ({}, "providers"),
            (body({}), "providers[0]"),
            (body({"name": ""}), "providers[0].name"),
            (body({"name": "x" * 201}), "providers[0].name"),
            (body({"name": "h", "trait": []}), "trait"),
            (body({"name": "h", "uuid": "1"}), "providers[0].uuid"),
            (body({"name": "h", "traits": ["low"]}), "providers[0].traits[0]"),
            (body({"name": "h", "aggregates": ["x"]}), "providers[0].aggregates[0]"),
            (body({"name": "h", "inventories": {"VCPU": 0}}), "providers[0].inventories.VCPU"),
            (body({"name": "h", "inventories": {"VCPU": {}}}), "providers[0].inventories.VCPU"),
            (
                body({"name": "h", "inventories": {"VCPU": {"total": 1, "step_size": 0}}}),
                "providers[0].inventories.VCPU.step_size",
            ),
            (body({"name": "h", "children": [{"name": 1}]}), "providers[0].children[0].name"),
            (body({"name": "h"}, {"name": "h"}), "providers[1]: 'h' is declared before"),
            (body({"name": "h"}, {"name": "g"}), "providers[1]: 'g' has no parent"),
            (body({"name": "h", "parent": "g"}), "providers[0]: 'h' has the parent 'g'"),
            (body({"name": "h", "parent": "h"}), "providers[0]: 'h' is below itself"),
            (
                body({"name": "h", "children": [{"name": "a", "parent": "b"}]}),
                "providers[0].children[0]: 'a' is among the children of 'h'",
            ),
            (body({"name": "h", "traits": ["HW_GHOST"]}), "h: there is no trait HW_GHOST"),
            (
                body({"name": "h", "inventories": {"GHOST": 1}}),
                "h: there is no resource class GHOST",
            ),
            (
                body({"name": "h", "inventories": {"VCPU": {"total": 1, "reserved": 2}}}),
                "h: 2 of VCPU are reserved",
            ),
            (body({"name": "g"}), "the declaration begins with 'g'"),
            (
                body({"name": "h", "traits": ["CUSTOM_ROOST_OWNER_YOU"]}),
                "the trait of another owner",
            ),
            (body({"name": "h"}, owner="you"), "the body 'you'"),
        ],
    )
    def test_a_bad_declaration_is_named_and_writes_nothing(
        self, api: ApiClient, sent: Any, sentence: str
    ) -> None:
        answer = api.put("/roost/trees/h?owner=me", sent)
        assert sentence in refused(answer, 400)
        assert names(api) == set()

    @pytest.mark.parametrize(
        ("query", "sentence"),
        [
            ("", "has no owner"),
            ("?owner=two%20words", "owner is 'two words'"),
            ("?owner=me&owner=me", "owner may be sent once"),
            ("?owner=me&dry_run=yes", "dry_run is 'yes'"),
            ("?owner=me&force=1", "force is '1'"),
            ("?owner=me&page_limit=1", "'page_limit' is no parameter"),
        ],
    )
    def test_a_bad_parameter_is_named(self, api: ApiClient, query: str, sentence: str) -> None:
        answer = api.put(f"/roost/trees/h{query}", body({"name": "h"}))
        assert sentence in refused(answer, 400)

    def test_a_large_declaration_is_refused(
        self, api: ApiClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(tree_body, "_PROVIDERS_MAX", 2)
        many = {"name": "h", "children": [{"name": "a"}, {"name": "b"}]}
        assert "more than 2 providers" in refused(put(api, "h", many), 400)

    def test_a_deep_declaration_is_refused(
        self, api: ApiClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(tree_body, "_LEVELS_MAX", 2)
        deep = {"name": "h", "children": [{"name": "a", "children": [{"name": "b"}]}]}
        assert "'b' is below 2 levels" in refused(put(api, "h", deep), 400)

    def test_nothing_cannot_be_withdrawn_from_an_unknown_tree(self, api: ApiClient) -> None:
        refused(put(api, "h"), 404, "roost.no_such_provider")

    def test_names_and_uuids_of_other_trees_are_told(self, api: ApiClient) -> None:
        build_world(api, "H(VCPU 1), N<H(VCPU 1), G(VCPU 1)")
        child = {"name": "G", "children": [{"name": "N"}]}
        sentence = refused(put(api, "G", child), 409, "placement.duplicate_name")
        assert "A provider 'N' with the uuid" in sentence
        child = {"name": "G", "children": [{"name": "M", "uuid": provider_uuid("N")}]}
        refused(put(api, "G", child), 409, "placement.duplicate_name")
        assert "is not in the tree of 'G'" in refused(put(api, "G", {"name": "H"}), 400)

    def test_a_row_without_a_root_is_told(self, api: ApiClient, database: Database) -> None:
        assert api.post("/resource_providers", {"name": "lost"}).status == 200
        hide = sa.update(tables.resource_providers).values(root_provider_id=None)
        database.write_at_once(lambda connection: connection.execute(hide))
        sentence = refused(put(api, "lost", {"name": "lost"}), 409, "placement.duplicate_name")
        assert "A row without a root has the name 'lost'" in sentence

    def test_a_declaration_renames_no_provider(self, api: ApiClient) -> None:
        build_world(api, "H(VCPU 1)")
        other = put(api, "H", {"name": "G", "uuid": provider_uuid("H")})
        assert "is declared as 'G', but is named 'H'" in refused(other, 409, "roost.uuid_taken")
        other = put(api, "H", {"name": "H", "uuid": ROOT})
        assert "Declare that uuid, or none" in refused(other, 409, "placement.duplicate_name")

    def test_capacity_counts_with_the_fields_that_stay(self, api: ApiClient) -> None:
        build_world(api, "H(VCPU 8 reserved 5)")
        answer = put(api, "H", {"name": "H", "inventories": {"VCPU": 4}})
        assert "H: 5 of VCPU are reserved, of a total of 4" in refused(answer, 400)


def test_claims_see_a_declared_inventory_at_once(api: ApiClient) -> None:
    build_world(api, "H(VCPU 1)")
    declare(api, "H", {"name": "H", "inventories": {"CUSTOM_GOLD": 3}})
    claim(api, "H", "CUSTOM_GOLD", 3)
    found = api.get("/allocation_candidates?resources=CUSTOM_GOLD:1").json
    assert found["provider_summaries"] == {}
