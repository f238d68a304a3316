"""`GET /roost/resilience`: which roots may be lost, one at a time."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from support.api_client import ApiClient
from support.worlds.notation import long_name, provider_uuid
from support.worlds.world import build_world

on_sqlite = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)


def hold(api: ApiClient, **held: dict[str, int]) -> None:
    """Let one new consumer hold these amounts, by provider."""
    body = {
        "allocations": {
            provider_uuid(name): {
                "resources": {long_name(kind): amount for kind, amount in amounts.items()}
            }
            for name, amounts in held.items()
        },
        "project_id": "lab",
        "user_id": "ann",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    answer = api.put(f"/allocations/{uuid4()}", body)
    assert answer.status == 204, answer.body


def lost(api: ApiClient) -> dict[str, Any]:
    """The roots that may not be lost, by name."""
    answer = api.get("/roost/resilience?lose=1")
    assert answer.status == 200, answer.body
    body = answer.json
    assert body["of"] == body["survives"] + len(body["roots"])
    assert (body["exact"], body["next"]) == (True, None)
    assert not any(root["fits"] for root in body["roots"])
    return {root["root"]["name"]: root for root in body["roots"]}


def test_a_root_may_be_lost_if_the_rest_takes_its_consumers(api: ApiClient) -> None:
    build_world(api, "H1(VCPU 8), H2(VCPU 8), H3(VCPU 4)")
    hold(api, H1={"VCPU": 4})
    hold(api, H1={"VCPU": 4})
    hold(api, H2={"VCPU": 3})
    # Without the first host: 4 beside 3 on the second host, and 4 on the third.
    assert lost(api) == {}
    hold(api, H3={"VCPU": 1})
    (name,) = lost(api)
    assert name == "H1"


@on_sqlite
def test_the_answer_says_why_a_root_may_not_be_lost(api: ApiClient) -> None:
    build_world(api, "H1(VCPU 8), H2(VCPU 8, MEM 4), H3(VCPU 8, MEM 4), H4(GOLD 1)")
    hold(api, H1={"VCPU": 8})
    hold(api, H2={"VCPU": 1})
    hold(api, H3={"VCPU": 1})
    hold(api, H4={"GOLD": 1})
    found = lost(api)
    assert found["H1"]["text"] == (
        "What 1 consumer holds from H1 does not fit elsewhere: "
        "too few other roots have room for 8 VCPU at once."
    )
    assert found["H1"]["root"]["uuid"] == provider_uuid("H1")
    assert found["H4"]["text"] == (
        "What 1 consumer holds from H4 does not fit elsewhere: "
        "all other roots together have too little CUSTOM_GOLD left."
    )
    assert found.keys() == {"H1", "H4"}


@on_sqlite
def test_the_answer_names_the_tie_to_what_consumers_hold_elsewhere(api: ApiClient) -> None:
    """The second pool has room, but it does not reach the host."""
    build_world(api, "*S(DISK 10, agg A), *R(DISK 10, agg B), H1(VCPU 4, agg A), H2(VCPU 4, agg A)")
    hold(api, H1={"VCPU": 4}, S={"DISK": 5})
    assert lost(api)["S"]["text"] == (
        "What 1 consumer holds from S does not fit elsewhere: too few other roots have room for "
        "5 DISK_GB at once and reach the roots where the consumers keep the rest."
    )


@on_sqlite
def test_the_answer_names_the_pool_that_does_not_reach_another_host(api: ApiClient) -> None:
    build_world(api, "*S(DISK 10, agg A), H1(VCPU 4, agg A), H2(VCPU 4, agg B)")
    hold(api, H1={"VCPU": 4}, S={"DISK": 5})
    assert lost(api)["H1"]["text"] == (
        "What 1 consumer holds from H1 does not fit elsewhere: too few other roots have room for "
        "4 VCPU at once and are reached by the sharing providers where the consumers keep the rest."
    )


# Each world, what its consumers hold, and the roots that may not be lost.
CASES: dict[str, tuple[str, list[dict[str, dict[str, int]]], set[str]]] = {
    "nothing is held": ("H1(VCPU 1), H2(VCPU 1)", [], set()),
    "a single root": ("H1(VCPU 4)", [{"H1": {"VCPU": 1}}], {"H1"}),
    "a drained root takes nothing": (
        "H1(VCPU 4), H2(VCPU 4 reserved 4)",
        [{"H1": {"VCPU": 1}}],
        {"H1"},
    ),
    "units count": (
        "H1(VCPU 8), H2(VCPU 8 max 2), H3(VCPU 8 step 2)",
        [{"H1": {"VCPU": 3}}],
        {"H1"},
    ),
    "the ratio counts": (
        "H1(VCPU 8), H2(VCPU 4 ratio 2)",
        [{"H1": {"VCPU": 8}}],
        set(),
    ),
    "one provider gives a part whole": (
        "H1(VCPU 4, MEM 4), H2(VCPU 4), N2<H2(MEM 4)",
        [{"H1": {"VCPU": 1, "MEM": 1}}],
        {"H1"},
    ),
    "parts of one tree stay in one tree": (
        "H1(VCPU 4), N1<H1(MEM 4), H2(VCPU 4), H3(MEM 4)",
        [{"H1": {"VCPU": 1}, "N1": {"MEM": 1}}],
        {"H1"},
    ),
    "distinct providers stay distinct": (
        "H1(), N1<H1(VCPU 4), M1<H1(VCPU 4), H2(VCPU 8)",
        [{"N1": {"VCPU": 1}, "M1": {"VCPU": 1}}],
        {"H1"},
    ),
    "a nested tree takes a nested tree": (
        "H1(), N1<H1(VCPU 4), M1<H1(VCPU 4), H2(VCPU 8), N2<H2(VCPU 1)",
        [{"N1": {"VCPU": 1}, "M1": {"VCPU": 4}}],
        set(),
    ),
    "what is held from other roots stays": (
        "H1(VCPU 4), H2(VCPU 4), H3(VCPU 4)",
        [{"H1": {"VCPU": 2}, "H2": {"VCPU": 4}}, {"H3": {"VCPU": 1}}],
        {"H2"},
    ),
    "a shared pool stays": (
        "*S(DISK 10, agg A), H1(VCPU 4, agg A), H2(VCPU 4, agg A)",
        [{"H1": {"VCPU": 4}, "S": {"DISK": 5}}],
        {"S"},
    ),
    "a pool that does not reach the new root": (
        "*S(DISK 10, agg A), H1(VCPU 4, agg A), H2(VCPU 4, agg B)",
        [{"H1": {"VCPU": 4}, "S": {"DISK": 5}}],
        {"H1", "S"},
    ),
    "a second pool for the same hosts": (
        "*S(DISK 10, agg A), *R(DISK 10, agg A B), H1(VCPU 4, agg A), H2(VCPU 4, agg A)",
        [{"H1": {"VCPU": 4}, "S": {"DISK": 5}}],
        set(),
    ),
    "a second pool for other hosts": (
        "*S(DISK 10, agg A), *R(DISK 10, agg B), H1(VCPU 4, agg A), H2(VCPU 4, agg A)",
        [{"H1": {"VCPU": 4}, "S": {"DISK": 5}}],
        {"S"},
    ),
}


@on_sqlite
@pytest.mark.parametrize("name", CASES)
def test_consumers_move_whole_and_keep_what_ties_them(api: ApiClient, name: str) -> None:
    world, consumers, expected = CASES[name]
    build_world(api, world)
    for held in consumers:
        hold(api, **held)
    assert lost(api).keys() == expected


@on_sqlite
def test_an_empty_cloud_has_nothing_to_lose(api: ApiClient) -> None:
    assert api.get("/roost/resilience").json == {
        "survives": 0,
        "of": 0,
        "exact": True,
        "roots": [],
        "next": None,
    }


@on_sqlite
def test_roots_come_in_pages(api: ApiClient) -> None:
    build_world(api, ", ".join(f"H{number}(VCPU 4)" for number in range(5)))
    for number in range(5):
        hold(api, **{f"H{number}": {"VCPU": 4}})
    marker, names = "", []
    for _ in range(3):
        body = api.get(f"/roost/resilience?lose=1&page_limit=2{marker}").json
        assert (body["survives"], body["of"]) == (0, 5)
        names += [root["root"]["name"] for root in body["roots"]]
        marker = f"&marker={body['next']}"
    assert body["next"] is None
    assert sorted(names) == [f"H{number}" for number in range(5)]


@on_sqlite
@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("lose=2", "Only the loss of one root at a time is worked out: send 1."),
        ("lose=", "lose is ''"),
        ("lose=1&lose=1", "lose may be sent once."),
        ("resources=VCPU:1", "Leave it out: the route takes lose, page_limit, marker."),
        ("page_limit=0", "page_limit is '0'."),
        ("marker=%21", "marker is not from an answer of this server."),
    ],
)
def test_a_bad_parameter_is_refused(api: ApiClient, query: str, sentence: str) -> None:
    answer = api.get(f"/roost/resilience?{query}")
    assert answer.status == 400
    assert sentence in answer.detail
