"""`POST /roost/whatif`: questions before and after changes that are made nowhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from roost.replica.replica import Replica
from support.api_client import Answer, ApiClient
from support.worlds.notation import provider_uuid
from support.worlds.world import build_world, claim, replace

pytestmark = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)

WORLD = (
    "H1(VCPU 8 ratio 2, T1), N1<H1(SRIOV_NET_VF 4), H2(VCPU 4 reserved 1), N2<H2(SRIOV_NET_VF 2)"
)
VCPU = "resources=VCPU:2"
BOTH = "resources=VCPU:1&resources_nic=SRIOV_NET_VF:1"
H1, N1, H2, N2 = map(provider_uuid, ("H1", "N1", "H2", "N2"))
UNKNOWN = "c0ffee00-0000-4000-8000-00000000dead"


def whatif(api: ApiClient, *changes: Any, ask: str = VCPU) -> Answer:
    return api.post("/roost/whatif", {"changes": list(changes), "ask": [{"candidates": ask}]})


def after(api: ApiClient, *changes: Any, ask: str = VCPU) -> Any:
    answer = whatif(api, *changes, ask=ask)
    assert answer.status == 200, answer.body
    return answer.json["answers"][0]["after"]


def roots(side: Any) -> set[str]:
    """The trees of the candidates."""
    return {its["root_provider_uuid"] for its in side["provider_summaries"].values()}


def as_asked(api: ApiClient, ask: str) -> Any:
    return {**api.get(f"/allocation_candidates?{ask}").json, "truncated": False}


def unordered(side: Any) -> Any:
    """An answer without the order of its candidates and traits."""
    summaries = {
        uuid: {**its, "traits": sorted(its["traits"])}
        for uuid, its in side["provider_summaries"].items()
    }
    return {**side, "provider_summaries": summaries} | {
        "allocation_requests": sorted(side["allocation_requests"], key=str)
    }


def set_inventory(api: ApiClient, name: str, kind: str, **fields: Any) -> None:
    path = f"/resource_providers/{provider_uuid(name)}/inventories/{kind}"
    present = api.get(path).json
    assert api.put(path, {**present, **fields}).status == 200


def delete_tree(api: ApiClient, *names: str) -> None:
    for name in names:
        assert api.delete(f"/resource_providers/{provider_uuid(name)}").status == 204


def reserve_all(api: ApiClient) -> None:
    set_inventory(api, "H1", "VCPU", reserved=8)
    set_inventory(api, "N1", "SRIOV_NET_VF", reserved=4)


# Each change, and the same change for real.
CHANGES: dict[str, tuple[Any, Callable[[ApiClient], Any]]] = {
    "drain a tree": ({"drain": "H1"}, reserve_all),
    "drain a child": (
        {"drain": N1},
        lambda api: set_inventory(api, "N1", "SRIOV_NET_VF", reserved=4),
    ),
    "remove a tree": ({"remove": "H2"}, lambda api: delete_tree(api, "N2", "H2")),
    "remove a child": ({"remove": N2}, lambda api: delete_tree(api, "N2")),
    "another total keeps ratio and reserved": (
        {"inventory": {"provider": "H1", "resource_class": "VCPU", "total": 3}},
        lambda api: set_inventory(api, "H1", "VCPU", total=3),
    ),
    "another ratio keeps the total": (
        {"inventory": {"provider": H2, "resource_class": "VCPU", "allocation_ratio": 8.0}},
        lambda api: set_inventory(api, "H2", "VCPU", allocation_ratio=8.0),
    ),
    "a new inventory": (
        {"inventory": {"provider": "N2", "resource_class": "VCPU", "total": 5, "max_unit": 3}},
        lambda api: replace(
            api,
            "N2",
            "inventories",
            {"SRIOV_NET_VF": {"total": 2}, "VCPU": {"total": 5, "max_unit": 3}},
        ),
    ),
    "traits": (
        {"traits": {"provider": "H1", "add": ["CUSTOM_T2"], "remove": ["CUSTOM_T1"]}},
        lambda api: replace(api, "H1", "traits", ["CUSTOM_T2"]),
    ),
    "a claim": (
        {"claim": {"query": f"resources=VCPU:3&in_tree={H2}"}},
        lambda api: claim(api, "H2", "VCPU", 3),
    ),
}


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize(
    "ask", [VCPU, BOTH, "resources=SRIOV_NET_VF:1", f"{BOTH}&required=CUSTOM_T2"]
)
def test_an_answer_after_a_change_is_that_after_the_real_change(
    api: ApiClient, name: str, ask: str
) -> None:
    build_world(api, WORLD)
    change, make = CHANGES[name]
    before = as_asked(api, ask)
    answer = whatif(api, change, ask=ask).json
    assert answer["answers"][0]["before"] == before
    assert as_asked(api, ask) == before
    make(api)
    assert unordered(answer["answers"][0]["after"]) == unordered(as_asked(api, ask))
    assert answer["changes"][0]["applied"]


def test_a_release_gives_back_what_the_consumer_holds(api: ApiClient) -> None:
    build_world(api, WORLD)
    consumer = claim(api, "H2", "VCPU", 3)
    side = after(api, {"release": consumer}, ask=f"{VCPU}&in_tree={H2}")
    assert api.get(f"/allocation_candidates?{VCPU}&in_tree={H2}").json["allocation_requests"] == []
    assert side["provider_summaries"][H2]["resources"]["VCPU"] == {"capacity": 3, "used": 0}


def test_changes_apply_in_their_order(api: ApiClient) -> None:
    build_world(api, WORLD)
    enlarged = {"inventory": {"provider": "H1", "resource_class": "VCPU", "total": 64}}
    # Fields that are not named stay: after a drain of 8, reserved is 8.
    side = after(api, {"drain": "H1"}, enlarged)
    assert side["provider_summaries"][H1]["resources"]["VCPU"]["capacity"] == 112
    narrow = {"claim": {"query": f"{VCPU}&in_tree={H1}"}}
    drained = after(api, enlarged, narrow, {"drain": "H1"}, enlarged)
    # The second change of the total finds the 64 reserved by the drain.
    assert roots(drained) == {H2}


def test_claims_take_room_until_none_is_left(api: ApiClient) -> None:
    build_world(api, WORLD)
    claims = [{"claim": {"query": "resources=VCPU:3", "order": "first"}}] * 7
    answer = whatif(api, *claims).json
    # The ratio of the first host makes room for five, and the second host has room for one.
    assert [change["applied"] for change in answer["changes"]] == [True] * 6 + [False]
    taken = {change["root"]["name"] for change in answer["changes"] if change["applied"]}
    assert taken == {"H1", "H2"}
    refused = answer["changes"][-1]
    assert refused["text"] == "The claim finds no candidate, so it changes nothing."


@pytest.mark.parametrize(
    ("order", "root"), [({"order": "pack"}, "H2"), ({"order": "spread"}, "H1")]
)
def test_a_claim_takes_the_best_candidate_of_its_order(
    api: ApiClient, order: Any, root: str
) -> None:
    build_world(api, WORLD)
    answer = whatif(api, {"claim": {"query": VCPU, **order}}).json
    assert answer["changes"][0]["root"]["name"] == root
    direct = api.get(f"/roost/candidates?{VCPU}&limit=1&order={order['order']}").json
    (best,) = direct["allocation_requests"]
    assert answer["changes"][0]["allocations"] == best["allocations"]
    assert answer["changes"][0]["mappings"] == best["mappings"]


def test_a_random_claim_is_the_same_for_the_same_seed(api: ApiClient) -> None:
    build_world(api, ", ".join(f"H{number}(VCPU 4)" for number in range(8)))
    taken = [
        whatif(api, {"claim": {"query": VCPU, "order": "random", "seed": seed}}).json["changes"]
        for seed in (1, 1, 2, 3, 4, 5)
    ]
    assert taken[0] == taken[1]
    assert len({change["root"]["uuid"] for (change,) in taken}) > 1


def test_an_explanation_is_given_before_and_after(api: ApiClient) -> None:
    build_world(api, WORLD)
    answer = api.post(
        "/roost/whatif", {"changes": [{"drain": "H1"}], "ask": [{"explain": "resources=VCPU:4"}]}
    ).json["answers"][0]
    assert answer["before"] == api.get("/roost/explain?resources=VCPU:4").json
    assert (answer["before"]["feasible"], answer["after"]["feasible"]) == (True, False)
    assert answer["after"]["reason"]["resource_class"] == "VCPU"


def test_the_nearest_misses_name_trees_that_are_made_up(api: ApiClient) -> None:
    build_world(api, "H1(VCPU 8)")
    answer = api.post(
        "/roost/whatif",
        {"changes": [{"add": {"like": "H1"}}], "ask": [{"explain": "resources=VCPU:9"}]},
    ).json
    misses = answer["answers"][0]["after"]["misses"]
    assert {miss["root"]["name"] for miss in misses} == {"H1", "H1+1"}


def test_an_amount_beyond_64_bits_is_told_as_asked(api: ApiClient) -> None:
    build_world(api, "H1(VCPU 8)")
    body = {"changes": [{"drain": "H1"}], "ask": [{"explain": f"resources=VCPU:{10**30}"}]}
    (miss,) = api.post("/roost/whatif", body).json["answers"][0]["after"]["misses"]
    assert miss["lacks"][0]["wanted"] == 10**30


def test_a_capacity_is_given_before_and_after(api: ApiClient) -> None:
    build_world(api, WORLD)
    changes = [{"drain": "H2"}, {"add": {"like": "H1", "count": 3}}]
    answer = api.post(
        "/roost/whatif", {"changes": changes, "ask": [{"capacity": "resources=VCPU:3"}]}
    ).json["answers"][0]
    assert answer["before"] == api.get("/roost/capacity?resources=VCPU:3").json
    # Sixteen VCPU of a host hold five of three, and the second host has room for one.
    assert (answer["before"]["fits"], answer["after"]["fits"]) == (6, 20)


def test_added_trees_are_as_their_model_without_its_usage(api: ApiClient) -> None:
    build_world(api, WORLD)
    claim(api, "N1", "SRIOV_NET_VF", 4)
    answer = whatif(api, {"add": {"like": N1, "count": 2}}, {"drain": "H2"}, ask=BOTH).json
    said = answer["changes"][0]
    assert said["made_up"] is True
    side = answer["answers"][0]["after"]
    assert roots(side) == {root["uuid"] for root in said["roots"]}
    assert [root["name"] for root in said["roots"]] == ["H1+1", "H1+2"]
    (root,) = (
        its for uuid, its in side["provider_summaries"].items() if uuid in said["roots"][0].values()
    )
    assert root["resources"] == {"VCPU": {"capacity": 16, "used": 0}}
    assert root["traits"] == ["CUSTOM_T1"]
    again = whatif(api, {"add": {"like": N1, "count": 2}}, {"drain": "H2"}, ask=BOTH)
    assert again.json == answer


def test_an_added_tree_may_have_the_usage_of_its_model(api: ApiClient) -> None:
    build_world(api, WORLD)
    claim(api, "N1", "SRIOV_NET_VF", 4)
    side = after(api, {"add": {"like": "H1", "empty": False}}, ask=BOTH)
    assert roots(side) == {H2}


def test_a_provider_that_begins_to_share_serves_other_trees(api: ApiClient) -> None:
    build_world(api, "S(DISK 100, agg A), H(VCPU 4, agg A)")
    ask = "resources=VCPU:1,DISK_GB:5"
    shares = {"traits": {"provider": "S", "add": ["MISC_SHARES_VIA_AGGREGATE"]}}
    answer = whatif(api, shares, ask=ask).json["answers"][0]
    assert (len(answer["before"]["allocation_requests"])) == 0
    assert (len(answer["after"]["allocation_requests"])) == 1


def test_a_question_without_a_limit_has_a_bound_and_says_so(
    api: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_world(api, WORLD)
    monkeypatch.setattr("roost.api.extensions.questions.whatif._LIMIT_DEFAULT", 1)
    side = after(api)
    assert (len(side["allocation_requests"]), side["truncated"]) == (1, True)


def test_answers_that_are_too_large_together_are_refused(
    api: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_world(api, WORLD)
    monkeypatch.setattr("roost.api.extensions.questions.whatif.ANSWER_BYTES_MAX", 1000)
    answer = whatif(api)
    assert (answer.status, "Ask fewer questions" in answer.detail) == (400, True)


def test_a_question_without_changes_is_answered_twice_alike(api: ApiClient) -> None:
    build_world(api, WORLD)
    answer = api.post("/roost/whatif", {"ask": [{"candidates": f"?{VCPU}"}]}).json
    assert answer["changes"] == []
    assert answer["answers"][0]["before"] == answer["answers"][0]["after"] == as_asked(api, VCPU)


def test_an_empty_cloud_has_no_candidates(api: ApiClient) -> None:
    assert after(api) == as_asked(api, VCPU)


# Each change of one thing, and its sentence.
ONE: dict[str, tuple[Any, str]] = {
    "drain": ({"drain": "N1"}, "N1 is drained: 1 inventory takes no further allocation."),
    "remove": ({"remove": "N1"}, "N1 is removed with all below it: 1 provider is gone."),
    "traits": (
        {"traits": {"provider": "H1", "remove": ["CUSTOM_T1"], "add": ["CUSTOM_T2"]}},
        "H1 gets 1 trait and loses 1.",
    ),
    "add": ({"add": {"like": "H1"}}, "1 new tree as that of H1 is added."),
    "claim": ({"claim": {"query": VCPU}}, "A new consumer claims from 1 provider."),
}


@pytest.mark.parametrize("name", ONE)
def test_one_thing_is_told_in_the_singular(api: ApiClient, name: str) -> None:
    build_world(api, f"{WORLD}, H3(T2)")
    change, sentence = ONE[name]
    assert whatif(api, change).json["changes"][0]["text"].startswith(sentence)


def test_one_provider_gives_back_in_the_singular(api: ApiClient) -> None:
    build_world(api, WORLD)
    (said,) = whatif(api, {"release": claim(api, "H2", "VCPU", 3)}).json["changes"]
    assert said["text"].endswith("gives back what it holds from 1 provider.")


NEW = {"provider": "H1", "resource_class": "DISK_GB"}
BAD_CHANGES: dict[str, tuple[Any, int, str]] = {
    "no such kind": ({"move": "H1"}, 400, "changes[1]"),
    "two kinds": ({"drain": "H1", "remove": "H2"}, 400, "changes[1]"),
    "no kind": ({}, 400, "changes[1]"),
    "no object": ("drain", 400, "changes[1]"),
    "a bad field": (
        {"inventory": {**NEW, "total": -1}},
        400,
        "changes[1].inventory.total",
    ),
    "an unknown field": ({"inventory": {**NEW, "size": 1}}, 400, "changes[1].inventory"),
    "no field": ({"inventory": NEW}, 400, "changes[1].inventory"),
    "a new inventory without a total": (
        {"inventory": {**NEW, "reserved": 1}},
        400,
        "changes[1]: H1 has no inventory of DISK_GB yet. Send its `total`, too.",
    ),
    "more reserved than total": (
        {"inventory": {"provider": "H1", "resource_class": "VCPU", "reserved": 9}},
        400,
        "changes[1]: VCPU of H1 would have 9 reserved of 8.",
    ),
    "a negative ratio": (
        {"inventory": {"provider": "H1", "resource_class": "VCPU", "allocation_ratio": -1}},
        400,
        "changes[1]: VCPU of H1 would have an allocation_ratio of -1",
    ),
    "an unknown class": (
        {"inventory": {"provider": "H1", "resource_class": "CUSTOM_NONE", "total": 1}},
        400,
        "changes[1]: No such resource class CUSTOM_NONE.",
    ),
    "an unknown trait": (
        {"traits": {"provider": "H1", "add": ["CUSTOM_NONE"]}},
        400,
        "changes[1]: No such trait(s): CUSTOM_NONE.",
    ),
    "a trait both ways": (
        {"traits": {"provider": "H1", "add": ["CUSTOM_T1"], "remove": ["CUSTOM_T1"]}},
        400,
        "changes[1]: CUSTOM_T1 is to be added and removed.",
    ),
    "no trait": ({"traits": {"provider": "H1"}}, 400, "changes[1]: the change names no trait."),
    "a bad query": (
        {"claim": {"query": "resources=VCPU:x"}},
        400,
        "changes[1]: ",
    ),
    "an unknown class in a query": (
        {"claim": {"query": "resources=CUSTOM_NONE:1"}},
        400,
        "changes[1]: Invalid resource class",
    ),
    "an unknown order": (
        {"claim": {"query": VCPU, "order": "best"}},
        400,
        "changes[1].claim.order",
    ),
    "a seed without chance": (
        {"claim": {"query": VCPU, "order": "pack", "seed": 1}},
        400,
        "changes[1]: seed belongs to the order random.",
    ),
    "an unknown provider": (
        {"drain": "H9"},
        404,
        "changes[1]: No provider has the uuid or name 'H9'",
    ),
    "a removed provider": ({"drain": "N2"}, 400, "changes[1]: provider N2 is gone"),
    "an unknown consumer": (
        {"release": UNKNOWN},
        404,
        f"changes[1]: Consumer {UNKNOWN} holds nothing",
    ),
    "a consumer that is no uuid": ({"release": "bob"}, 400, "changes[1].release"),
    "too many trees": ({"add": {"like": "H1", "count": 10_000_000}}, 400, "changes[1].add.count"),
    "a name with NUL": ({"drain": "H\0"}, 400, "NUL"),
}


@pytest.mark.parametrize("name", BAD_CHANGES)
def test_a_bad_change_is_refused_with_its_position(api: ApiClient, name: str) -> None:
    build_world(api, WORLD)
    change, status, sentence = BAD_CHANGES[name]
    answer = whatif(api, {"remove": "H2"}, change)
    assert answer.status == status
    assert sentence in answer.detail
    codes = {"an unknown provider": "roost.no_such_provider"}
    codes["an unknown consumer"] = "roost.no_such_consumer"
    if name in codes:
        assert answer.error["code"] == codes[name]


BAD_BODIES: dict[str, tuple[Any, str]] = {
    "no question": ({"changes": []}, "ask"),
    "an empty list of questions": ({"ask": []}, "ask"),
    "too many questions": (
        {"ask": [{"candidates": VCPU}] * 21},
        "ask: 21 are more than the 20 that a request may have. Send fewer.",
    ),
    "too many changes": (
        {"ask": [{"candidates": VCPU}], "changes": [{"drain": "H1"}] * 101},
        "changes: 101 are more than the 100 that a request may have. Send fewer.",
    ),
    "a bad query": ({"ask": [{"candidates": VCPU}, {"candidates": "resources="}]}, "ask[1]: "),
    "an unknown name in a query": (
        {"ask": [{"candidates": "resources=CUSTOM_NONE:1"}]},
        "ask[0]: Invalid resource class",
    ),
    "a query that is no text": ({"ask": [{"candidates": 7}]}, "ask[0].candidates"),
    "an unknown question": ({"ask": [{"colour": VCPU}]}, "ask[0]"),
    "a limit beyond the bound": (
        {"ask": [{"candidates": f"{VCPU}&limit=10001"}]},
        "ask[0]: a limit",
    ),
    "an unknown member": ({"ask": [{"candidates": VCPU}], "order": 1}, "order"),
    "no object": ([], "JSON does not validate"),
    "no JSON": (b"{", "Malformed JSON"),
    "a very deep body": (b"[" * 500 + b"]" * 500, "JSON does not validate"),
}


@pytest.mark.parametrize("name", BAD_BODIES)
def test_a_bad_body_is_refused_with_the_place(api: ApiClient, name: str) -> None:
    body, sentence = BAD_BODIES[name]
    answer = api.post("/roost/whatif", body)
    assert answer.status == 400
    assert sentence in answer.detail
    assert "code" in answer.error


def test_a_consumer_gives_back_once(api: ApiClient) -> None:
    build_world(api, WORLD)
    consumer = claim(api, "H2", "VCPU", 3)
    answer = whatif(api, {"release": consumer}, {"release": consumer.upper()})
    assert answer.status == 400
    assert "changes[1]: an earlier change releases consumer" in answer.detail


def test_facts_that_change_during_the_look_are_read_again(
    api: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A claim between the look at the tables and the look of the replica counts once."""
    build_world(api, WORLD)
    consumer = claim(api, "H2", "VCPU", 1)
    look, disturbances = Replica.current_with_position, [consumer]

    def disturbed(replica: Replica) -> Any:
        if disturbances:
            path = f"/allocations/{disturbances.pop()}"
            held = api.get(path).json
            held["allocations"][H2]["resources"]["VCPU"] = 3
            assert api.put(path, held).status == 204
        return look(replica)

    monkeypatch.setattr(Replica, "current_with_position", disturbed)
    side = after(api, {"release": consumer}, ask=f"{VCPU}&in_tree={H2}")
    assert side["provider_summaries"][H2]["resources"]["VCPU"] == {"capacity": 3, "used": 0}
