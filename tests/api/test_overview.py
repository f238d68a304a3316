"""`GET /roost/overview`: all roots as columns, with totals and groups."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, urlencode

import pytest

from roost.store.database import Database
from support.api_client import ApiClient
from support.store.bulk_rows import numbered_uuid, write_providers
from support.worlds.notation import aggregate_uuid, provider_uuid, write_query
from support.worlds.world import build_world, claim

on_sqlite = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)

COLUMNS = ["uuid", "name", "total", "reserved", "used", "free", "fits", "group"]
# A host with two NUMA nodes, a flat host, and a pool that lends to the second host.
WORLD = (
    "H(DISK 40, T1), N1<H(VCPU 8 used 2, MEM 4), N2<H(VCPU 8 used 5, T2, agg B),"
    " G(VCPU 4, agg A), *P(DISK 90 used 30, agg A)"
)


def overview(api: ApiClient, **parameters: str) -> dict[str, Any]:
    answer = api.get(f"/roost/overview?{urlencode(parameters)}")
    assert answer.status == 200, answer.body
    body: dict[str, Any] = answer.json
    assert body["columns"] == COLUMNS
    return body


def rows(api: ApiClient, **parameters: str) -> dict[str, list[Any]]:
    """The amounts, the fits and the group of each root, by name."""
    return {name: rest for _, name, *rest in overview(api, **parameters)["rows"]}


def names(api: ApiClient, **parameters: str) -> set[str]:
    return set(rows(api, **parameters))


def rename(api: ApiClient, name: str, new: str) -> None:
    path = f"/resource_providers/{provider_uuid(name)}"
    assert api.put(path, {"name": new}).status == 200


def test_amounts_are_sums_over_trees(api: ApiClient) -> None:
    build_world(api, WORLD)
    assert rows(api, resource_class="VCPU") == {
        "H": [16, 0, 7, 9, None, None],
        "G": [4, 0, 0, 4, None, None],
        "P": [0, 0, 0, 0, None, None],
    }
    found = overview(api)
    assert found["totals"] == {
        "DISK_GB": amounts(130, 30, 100, providers=2),
        "MEMORY_MB": amounts(4, 0, 4, providers=1),
        "VCPU": amounts(20, 7, 13, providers=3),
    }
    assert (found["roots"], found["groups"], found["exact"], found["next"]) == (3, [], None, None)
    assert [row[0] for row in found["rows"]] == sorted(map(provider_uuid, "HGP"))


def amounts(total: int, used: int, free: int, providers: int) -> dict[str, int]:
    """The totals of a class of which nothing is reserved, and everything counts once."""
    return {
        "total": total,
        "reserved": 0,
        "used": used,
        "free": free,
        "capacity": total,
        "providers": providers,
    }


def test_without_a_class_amounts_are_null(api: ApiClient) -> None:
    build_world(api, "H(VCPU 8)")
    found = overview(api, group_by="aggregate")
    assert [row[2:] for row in found["rows"]] == [[None] * 6]
    group = found["groups"][0]
    assert (group["roots"], group["total"], group["free"], group["fits"]) == (1, None, None, None)


def test_free_is_what_claims_can_still_take(api: ApiClient) -> None:
    build_world(api, "H(), N1<H(VCPU 8 used 6), N2<H(VCPU 8)")
    for name, fields in (("N1", {"total": 4}), ("N2", {"reserved": 3, "allocation_ratio": 1.5})):
        path = f"/resource_providers/{provider_uuid(name)}/inventories/VCPU"
        assert api.put(path, {**api.get(path).json, **fields}).status == 200
    # More of the first node is used than it has. The capacity of the second is 7.5.
    assert rows(api, resource_class="VCPU") == {"H": [12, 3, 6, 7, None, None]}
    total = overview(api)["totals"]["VCPU"]
    assert (total["free"], total["capacity"]) == (7, 11)


def test_every_write_counts_in_the_next_answer(api: ApiClient) -> None:
    build_world(api, "H(VCPU 8), G(VCPU 4)")
    before = rows(api, resource_class="VCPU", fits="resources=VCPU:3")
    assert before == {"H": [8, 0, 0, 8, 2, None], "G": [4, 0, 0, 4, 1, None]}
    claim(api, "H", "VCPU", 4)
    rename(api, "G", 'höst "\\;~1~ \N{OWL}')
    assert rows(api, resource_class="VCPU", fits="resources=VCPU:3") == {
        "H": [8, 0, 4, 4, 1, None],
        'höst "\\;~1~ \N{OWL}': [4, 0, 0, 4, 1, None],
    }
    assert api.delete(f"/resource_providers/{provider_uuid('G')}").status == 204
    assert names(api) == {"H"}


def test_each_root_has_its_pools_to_itself(api: ApiClient) -> None:
    build_world(api, "H1(VCPU 9, agg A), H2(VCPU 2, agg A), H3(VCPU 9), *P(DISK 40, agg A)")
    found = overview(api, fits=write_query("VCPU:1,DISK:10"), group_by="aggregate")
    assert {row[1]: row[6] for row in found["rows"]} == {"H1": 4, "H2": 2, "H3": 0, "P": 0}
    assert found["exact"] is True
    assert [(group["roots"], group["fits"]) for group in found["groups"]] == [(3, 6), (1, 0)]


@on_sqlite
def test_bounds_are_not_exact(api: ApiClient) -> None:
    build_world(api, "H(VCPU 9, MEM 9)")
    query = "resources=VCPU:2&or_resources=MEMORY_MB:2"
    found = overview(api, fits=query)
    assert [row[6] for row in found["rows"]] == [4]
    assert found["exact"] is False


def test_roots_are_filtered_by_name_trait_and_aggregate(api: ApiClient) -> None:
    build_world(api, WORLD)
    a, b = aggregate_uuid("A"), aggregate_uuid("B")
    assert names(api, aggregate=a) == {"G", "P"}
    # Any provider of the tree will do, in any spelling of a uuid.
    assert names(api, aggregate=b.replace("-", "").upper()) == {"H"}
    assert names(api, trait="CUSTOM_T2") == {"H"}
    assert names(api, trait="CUSTOM_T2", aggregate=a) == set()
    assert names(api, name="G") == {"G"}
    assert names(api, name="N1") == names(api, name="g") == set()
    assert names(api, name="", trait="", aggregate="", resource_class="", fits="") == set("HGP")
    found = overview(api, aggregate=a, resource_class="DISK_GB", page_limit="1")
    # The totals are over all roots that match, and over no others.
    assert (found["roots"], len(found["rows"])) == (2, 1)
    assert found["totals"] == {
        "DISK_GB": amounts(90, 30, 60, providers=1),
        "VCPU": amounts(4, 0, 4, providers=1),
    }


@on_sqlite
def test_a_star_stands_for_any_characters(api: ApiClient) -> None:
    build_world(api, "H1(VCPU 1), H2(VCPU 1), G(VCPU 1)")
    rename(api, "H1", "rack[1]-h?st\n1")
    rename(api, "H2", "rack1-host-2")
    assert names(api, name="rack*") == {"rack[1]-h?st\n1", "rack1-host-2"}
    assert names(api, name="*[1]*?*1") == {"rack[1]-h?st\n1"}
    assert names(api, name="rack[1]*2") == names(api, name="ack*") == set()
    assert names(api, name="*") == {"rack[1]-h?st\n1", "rack1-host-2", "G"}
    # A pattern like this keeps a simple matcher busy for hours.
    rename(api, "G", "a" * 200)
    assert names(api, name="*a" * 90 + "*b") == set()


def test_groups_have_the_sums_of_their_roots(api: ApiClient) -> None:
    build_world(
        api,
        "H1(VCPU 8 used 3, T1), N<H1(VCPU 4, T2), H2(VCPU 4, T1, T2), H3(VCPU 2, T2), H4(VCPU 1)",
    )
    found = overview(
        api,
        group_by="trait:CUSTOM_T",
        resource_class="VCPU",
        fits="resources=VCPU:2",
        page_limit="1",
    )
    # A root with two of the traits belongs to the first. What children have does not count.
    assert found["groups"] == [
        {
            "group": "CUSTOM_T1",
            "roots": 2,
            "total": 16,
            "reserved": 0,
            "used": 3,
            "free": 13,
            "fits": 6,
        },
        {
            "group": "CUSTOM_T2",
            "roots": 1,
            "total": 2,
            "reserved": 0,
            "used": 0,
            "free": 2,
            "fits": 1,
        },
        {"group": None, "roots": 1, "total": 1, "reserved": 0, "used": 0, "free": 1, "fits": 0},
    ]
    grouped = rows(api, group_by="trait:CUSTOM_T")
    assert {name: row[-1] for name, row in grouped.items()} == {
        "H1": "CUSTOM_T1",
        "H2": "CUSTOM_T1",
        "H3": "CUSTOM_T2",
        "H4": None,
    }


@on_sqlite
def test_an_aggregate_is_a_group(api: ApiClient) -> None:
    build_world(api, WORLD)
    a = aggregate_uuid("A")
    assert {name: row[-1] for name, row in rows(api, group_by="aggregate").items()} == {
        "H": None,
        "G": a,
        "P": a,
    }


def test_an_empty_cloud_has_an_overview(api: ApiClient) -> None:
    found = overview(api, resource_class="VCPU", fits="resources=VCPU:1", group_by="aggregate")
    assert (found["rows"], found["totals"], found["groups"], found["roots"]) == ([], {}, [], 0)
    assert found["exact"] is True


def test_pages_together_have_every_root_once(api: ApiClient) -> None:
    build_world(api, ", ".join(f"H{number}(VCPU {number + 1})" for number in range(7)))
    seen: list[Any] = []
    marker: dict[str, str] = {}
    for _ in range(4):
        found = overview(api, resource_class="VCPU", page_limit="2", **marker)
        assert (found["roots"], found["totals"]["VCPU"]["total"]) == (7, 28)
        seen += found["rows"]
        marker = {"marker": found["next"]}
    assert found["next"] is None
    assert seen == overview(api, resource_class="VCPU", page_limit="100000")["rows"]
    assert len(seen) == 7


def test_a_cursor_is_where_later_changes_begin(api: ApiClient, database: Database) -> None:
    build_world(api, "H(VCPU 8), G(VCPU 8)")
    position = database.dialect.position.from_text(overview(api)["cursor"])
    assert database.read(position.read, 100)[0] == ()
    claim(api, "G", "VCPU", 1)
    (entry,), _ = database.read(position.read, 100)
    assert entry.usages == {0: 1}
    later = database.dialect.position.from_text(overview(api)["cursor"])
    assert database.read(later.read, 100)[0] == ()


@on_sqlite
@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ("resource_class=GOLD", "No such resource class GOLD."),
        ("trait=CUSTOM_NOBODY", "No such trait(s): CUSTOM_NOBODY."),
        ("aggregate=rack-1", "aggregate is 'rack-1'. Send the uuid of an aggregate."),
        ("group_by=trait:", "group_by is 'trait:'. Send `aggregate`, or `trait:`"),
        ("group_by=name", "group_by is 'name'."),
        ("fits=resources", "fits: "),
        ("fits=resources%3DGOLD:1", "fits: Invalid resource class in resources parameter"),
        ("resources=VCPU:1", "'resources' is no parameter of this route."),
        ("name=a&name=b", "name may be sent once."),
        ("page_limit=100001", "Send a number from 1 to 100000."),
        ("page_limit=0", "Send a number from 1 to 100000."),
        ("marker=%21", "marker is not from an answer of this server."),
    ],
)
def test_bad_parameters_are_refused(api: ApiClient, parameters: str, sentence: str) -> None:
    build_world(api, "H(VCPU 1)")
    answer = api.at("1.0").get(f"/roost/overview?{parameters}")
    assert answer.status == 400
    assert sentence in answer.detail
    assert "code" in answer.error


@on_sqlite
def test_an_unknown_place_in_the_query_is_404(api: ApiClient) -> None:
    answer = api.get(f"/roost/overview?fits={quote('resources=VCPU:1&in_tree=nobody')}")
    assert answer.status == 404
    assert answer.error["code"] == "roost.no_such_provider"


@on_sqlite
def test_many_roots_are_in_one_answer(api: ApiClient, database: Database) -> None:
    database.write_at_once(write_providers, range(3000), total=8)
    found = overview(api, resource_class="VCPU", page_limit="100000")
    assert [row[:2] for row in found["rows"]] == [
        [numbered_uuid(number), f"provider {number}"] for number in range(3000)
    ]
    assert found["totals"]["VCPU"] == amounts(24_000, 0, 24_000, providers=3000)
    first = overview(api, resource_class="VCPU")
    assert first["rows"] == found["rows"][:1000]
    assert first["next"] is not None


@on_sqlite
def test_absurd_ratios_overflow_no_sum(api: ApiClient) -> None:
    build_world(api, ", ".join(["H(VCPU 1)", *(f"N{at}<H(VCPU 1)" for at in range(5))]))
    for name in ("H", *(f"N{at}" for at in range(5))):
        path = f"/resource_providers/{provider_uuid(name)}/inventories/VCPU"
        fields = {"total": 2**31 - 1, "allocation_ratio": 1e30}
        assert api.put(path, {**api.get(path).json, **fields}).status == 200
    found = overview(api, resource_class="VCPU", group_by="aggregate")
    largest = 2**63 - 1
    assert [row[2:6] for row in found["rows"]] == [[6 * (2**31 - 1), 0, 0, largest]]
    assert found["totals"]["VCPU"]["free"] == found["groups"][0]["free"] == largest
