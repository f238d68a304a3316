"""`GET /roost/explain`, and the dominant reason of an answer without candidates."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from roost.api.application import Application
from roost.api.observation import scrapes
from roost.configuration.settings import WatchSettings
from roost.store.database import Database
from support.api_client import Answer, ApiClient, application_client, settings_for
from support.worlds.notation import provider_uuid, write_query
from support.worlds.world import build_world, claim

pytestmark = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)

WORLD = (
    "H1(VCPU 8, agg A, T1)  N1<H1(SRIOV_NET_VF 2)  M1<H1(SRIOV_NET_VF 2, T2)  "
    "H2(VCPU 4 max 2)  *S(DISK 10, agg A)"
)


def explained(api: ApiClient, query: str, **own: str) -> Any:
    further = "".join(f"&{name}={value}" for name, value in own.items())
    answer = api.get(f"/roost/explain?{write_query(query)}{further}")
    assert answer.status == 200, answer.body
    return answer.json


def test_a_query_with_candidates_has_a_funnel_and_no_reason(api: ApiClient) -> None:
    build_world(api, WORLD)
    found = explained(api, "resources=VCPU:4&resources_N=SRIOV_NET_VF:1")
    assert found["feasible"] is True
    assert found["exact"] is True
    assert found["reason"] is None
    stages = ["class", "unit", "room", "traits", "aggregates", "in_tree"]
    assert [group["group"] for group in found["groups"]] == ["", "_N"]
    assert all([row["stage"] for row in group["funnel"]] == stages for group in found["groups"])
    assert [row["text"] for row in found["groups"][0]["funnel"]] == [
        "2 providers in 2 trees have inventory of VCPU.",
        "1 provider in 1 tree allows VCPU:4 by min_unit, max_unit and step_size.",
        "1 provider in 1 tree has room for VCPU:4.",
        "1 provider in 1 tree remains: the query asks no traits of single providers.",
        "1 provider in 1 tree remains: the query asks no aggregates.",
        "1 provider in 1 tree remains: the query asks no in_tree.",
    ]
    assert found["trees"] == [
        {
            "stage": "root",
            "trees": 3,
            "text": "3 trees remain: the query asks nothing of the root.",
        },
        {"stage": "groups", "trees": 1, "text": "1 tree has a provider for each group by itself."},
        {
            "stage": "together",
            "trees": 1,
            "text": "1 tree has a provider for all groups together.",
        },
    ]


@pytest.mark.parametrize(
    ("query", "stage", "group", "resource_class", "words"),
    [
        ("VCPU:1,PCPU:1", "class", "", "PCPU", "inventory of PCPU"),
        ("resources_N=SRIOV_NET_VF:1,VCPU:1", "class", "_N", None, "SRIOV_NET_VF and VCPU"),
        ("VCPU:9", "room", "", "VCPU", "room for VCPU:9; the most that one has left is 8"),
        ("resources=DISK:1&resources_X=VCPU:1000", "room", "_X", "VCPU", "VCPU:1000"),
        ("VCPU:3&in_tree=<H2>", "in_tree", "", None, "in the tree of"),
        (
            "VCPU:1&required=!T1&resources_N=SRIOV_NET_VF:1&required_N=T1",
            "traits",
            "_N",
            None,
            "T1",
        ),
        ("VCPU:1&member_of={Z}", "aggregates", "", None, "in aggregate"),
        ("VCPU:1&root_required=T2", "root", None, None, "CUSTOM_T2"),
        ("DISK:1&resources_N=SRIOV_NET_VF:1&in_tree=<S>", "groups", None, None, "groups"),
        ("VCPU:1&required=T2", "together", None, None, "CUSTOM_T2"),
        # Each tree has room for both groups, and none has the trait.
        ("VCPU:1&required=T2&resources_X=VCPU:1", "together", None, None, "CUSTOM_T2"),
        ("VCPU:5&resources_X=VCPU:5", "together", None, "VCPU", "VCPU"),
        (
            "resources_A=SRIOV_NET_VF:1&resources_B=SRIOV_NET_VF:1&resources_C=SRIOV_NET_VF:1"
            "&group_policy=isolate",
            "together",
            None,
            None,
            "group_policy=isolate",
        ),
        (
            "resources_A=SRIOV_NET_VF:2&resources_B=SRIOV_NET_VF:2&group_policy=none"
            "&same_subtree=_A,_B",
            "together",
            None,
            None,
            "same_subtree=_A,_B",
        ),
        ("VCPU:1&required_X=!T1&same_subtree=_X", "class", "_X", None, "asks neither"),
    ],
)
def test_the_reason_names_the_first_stage_that_leaves_no_tree(
    api: ApiClient,
    *,
    query: str,
    stage: str,
    group: str | None,
    resource_class: str | None,
    words: str,
) -> None:
    build_world(api, WORLD)
    found = explained(api, query)
    assert found["feasible"] is False
    reason = found["reason"]
    text = reason.pop("text")
    assert reason == {"stage": stage, "group": group, "resource_class": resource_class}, text
    assert words in text
    # The header has the same sentence, without an account.
    answer = ask(api, query)
    assert answer.json["allocation_requests"] == []
    assert answer.headers["X-Roost-Reason"] == text


def test_a_provider_restricts_everything_to_its_tree(api: ApiClient) -> None:
    build_world(api, WORLD)
    assert explained(api, "VCPU:4")["feasible"]
    for reference in (provider_uuid("H2"), "H2"):
        found = explained(api, "VCPU:4", provider=reference)
        assert not found["feasible"]
        assert found["reason"]["stage"] == "unit"
        assert found["reason"]["text"].startswith("No provider of this tree allows VCPU:4 by ")
        assert [row["providers"] for row in found["groups"][0]["funnel"]] == [1, 0, 0, 0, 0, 0]
    # A child stands for its tree.
    assert explained(api, "VCPU:4", provider="N1")["feasible"]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("DISK_GB:1", "No provider of this tree has inventory of DISK_GB."),
        ("VCPU:1&root_required=CUSTOM_T2", "This tree does not have a root that has"),
        (
            "VCPU:3&resources_a=VCPU:3&group_policy=none",
            "but this tree does not have room for the VCPU of all groups together.",
        ),
    ],
)
def test_a_reason_about_one_tree_does_not_speak_of_the_cloud(
    api: ApiClient, query: str, words: str
) -> None:
    build_world(api, "H1(VCPU 4)  H2(VCPU 8, DISK 9, T2)")
    assert explained(api, query)["feasible"]
    assert words in explained(api, query, provider="H1")["reason"]["text"]


@pytest.mark.parametrize("amount", [2**61 + 2, 10**30])
def test_a_miss_tells_the_amount_that_was_asked_for(api: ApiClient, amount: int) -> None:
    build_world(api, WORLD)
    (miss, *_) = explained(api, f"resources=VCPU:{amount}")["misses"]
    assert {lack["wanted"] for lack in miss["lacks"]} == {amount}
    assert all(f"{amount:,} are wanted" in lack["text"] for lack in miss["lacks"])


def test_misses_come_nearest_and_hints_have_candidates(api: ApiClient) -> None:
    build_world(api, "H1(VCPU 8 used 5)  H2(VCPU 8 used 4)  H3(DISK 10)")
    found = explained(api, "VCPU:6", misses="2")
    first, second = found["misses"]
    assert first["root"] == {"uuid": provider_uuid("H2"), "name": "H2"}
    assert first["lacks"] == [
        {
            "group": "",
            "provider": {"uuid": provider_uuid("H2"), "name": "H2"},
            "stage": "room",
            "resource_class": "VCPU",
            "wanted": 6,
            "free": 4,
            "rule": "room",
            "traits": [],
            "aggregates": [],
            "groups": [],
            "text": "H2 has 4 VCPU free, 6 are wanted.",
        }
    ]
    assert second["root"]["name"] == "H1"
    assert found["hints"]
    for hint in found["hints"]:
        assert api.get(f"/allocation_candidates?{hint['query']}").json["allocation_requests"]
    # Hints begin with misses.
    alone = explained(api, "VCPU:6", misses="0")
    assert alone["misses"] == alone["hints"] == []


@pytest.mark.parametrize(
    ("parameters", "status", "code"),
    [
        ("resources=VCPU:1&provider=nobody", 404, "roost.no_such_provider"),
        ("resources=VCPU:1&provider=", 404, "roost.no_such_provider"),
        ("resources=VCPU:1&misses=101", 400, "placement.query.bad_value"),
        ("resources=VCPU:1&misses=-1", 400, "placement.query.bad_value"),
        ("resources=VCPU:1&misses=1&misses=1", 400, "placement.query.duplicate_key"),
        ("resources=NOPE:1", 400, "placement.undefined_code"),
        ("", 400, "placement.query.missing_value"),
        ("resources=VCPU:1&nonsense=1", 400, "placement.undefined_code"),
    ],
)
def test_bad_parameters_are_refused(
    api: ApiClient, parameters: str, status: int, code: str
) -> None:
    answer = api.at("1.10").get(f"/roost/explain?{parameters}")
    assert answer.status == status
    assert answer.json["errors"][0]["code"] == code


def test_an_empty_cloud_is_explained(api: ApiClient) -> None:
    found = explained(api, "resources=VCPU:1")
    assert (found["reason"]["stage"], found["trees"][0]["trees"]) == ("class", 0)


def ask(api: ApiClient, query: str, version: str = "1.39", explain: str | None = "1") -> Answer:
    headers = {} if explain is None else {"X-Roost-Explain": explain}
    path = f"/allocation_candidates?{write_query(query)}"
    return api.at(version).request("GET", path, headers=headers)


def test_the_reason_follows_a_kept_answer_and_the_forest(api: ApiClient) -> None:
    build_world(api, "P(VCPU 4)")
    query = "VCPU:3"
    assert "X-Roost-Reason" not in ask(api, query).headers
    claim(api, "P", "VCPU", 2)
    # Without the header nothing changes, and the answer is kept.
    assert "X-Roost-Reason" not in ask(api, query, explain=None).headers
    assert "X-Roost-Reason" not in ask(api, query, explain="0").headers
    for _ in range(2):
        assert ask(api, query).headers["X-Roost-Reason"].endswith("that one has left is 2.")
    claim(api, "P", "VCPU", 1)
    assert ask(api, query).headers["X-Roost-Reason"].endswith("that one has left is 1.")


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("VCPU:5", "No provider has room for VCPU:5; the most that one has left is 4."),
        (
            "VCPU:5&order=random",
            "No provider has room for VCPU:5; the most that one has left is 4.",
        ),
        ("VCPU:5&order=pack&limit=1", "No provider has room for VCPU:5; "),
        # The second alternative comes further than the first.
        ("DISK:1&or_resources=VCPU:5", "No provider has room for VCPU:5; "),
        ("VCPU:1&in_subtree=P&in_tree=Q", "No provider"),
    ],
)
def test_the_extended_route_tells_the_reason_too(api: ApiClient, query: str, text: str) -> None:
    build_world(api, "P(VCPU 4)  Q(GOLD 1)")
    path = f"/roost/candidates?{write_query(query)}"
    for _ in range(2):
        answer = api.request("GET", path, headers={"X-Roost-Explain": "1"})
        assert answer.json["allocation_requests"] == []
        assert answer.headers["X-Roost-Reason"].startswith(text)
    assert "X-Roost-Reason" not in api.get(path).headers
    found = explained(api, query.partition("&order")[0])
    assert answer.headers["X-Roost-Reason"] == found["reason"]["text"]


@pytest.mark.parametrize("maximum", [-1, 3])
def test_the_option_asks_for_every_reason(
    database: Database, tmp_path: Path, maximum: int, caplog: pytest.LogCaptureFixture
) -> None:
    configuration = (
        "[api]\nauth_strategy = noauth2\n"
        f"[oslo_policy]\npolicy_file = {tmp_path}/policy.yaml\nenforce_new_defaults = false\n"
        f"[placement]\nmax_allocation_candidates = {maximum}\n[roost]\nexplain_empty = true\n"
    )
    settings = settings_for(database, tmp_path, configuration)
    assert settings.watch == WatchSettings(explain_empty=True)
    api = application_client(Application(settings, database))
    build_world(api, "P(VCPU 4)")
    with caplog.at_level(logging.INFO, "placement.requestlog"):
        answer = ask(api, "VCPU:5", explain=None)
    assert answer.json == {"allocation_requests": [], "provider_summaries": {}}
    text = answer.headers["X-Roost-Reason"]
    assert text == "No provider has room for VCPU:5; the most that one has left is 4."
    assert caplog.messages[-1].endswith(f" microversion: 1.39 reason: {text}")
    assert "X-Roost-Reason" not in ask(api, "VCPU:4", explain=None).headers
    assert api.get("/roost/candidates?resources=VCPU:5").headers["X-Roost-Reason"] == text


def test_a_metric_counts_the_stages_of_reasons(
    api: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each scrape is made anew.
    monkeypatch.setattr(scrapes, "_KEPT_SECONDS_MAX", -1.0)

    def room_count() -> float:
        lines = api.get("/metrics").body.decode().splitlines()
        found = [
            line for line in lines if line.startswith('roost_empty_answers_total{stage="room"')
        ]
        return sum(float(line.split()[-1]) for line in found)

    build_world(api, "P(VCPU 4)")
    before = room_count()
    ask(api, "VCPU:5")
    ask(api, "VCPU:5")
    ask(api, "VCPU:5", explain=None)
    assert room_count() == before + 2


def test_a_long_reason_is_cut_in_the_header_and_whole_in_the_explanation(api: ApiClient) -> None:
    build_world(api, WORLD)
    query = "VCPU:1" + "".join(f"&member_of={provider_uuid(str(n))}" for n in range(12))
    text = explained(api, query)["reason"]["text"]
    header = ask(api, query).headers["X-Roost-Reason"]
    assert len(header) == 300
    assert header.endswith("...")
    assert text.startswith(header.removesuffix("..."))


def test_an_old_version_has_its_own_reason(api: ApiClient) -> None:
    build_world(api, "R(MEM 9)  N<R(VCPU 4)")
    query = "VCPU:1,MEM:1"
    assert ask(api, query).json["allocation_requests"]
    reason = ask(api, query, version="1.28").headers["X-Roost-Reason"]
    assert "one provider of a tree" in reason


def test_a_search_that_gave_up_says_so(api: ApiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    build_world(api, "R(VCPU 5)  N<R(VCPU 5)")
    query = "resources_A=VCPU:3&resources_B=VCPU:3&resources_C=VCPU:2&group_policy=none"
    assert explained(api, query)["feasible"]
    monkeypatch.setattr("roost.search.candidates.effort.UNITS_MAX", 0)
    found = explained(api, query, misses="0")
    assert found["exact"] is False
    assert "the search gave up" in found["reason"]["text"]
    answer = ask(api, f"{query}&limit=5")
    assert answer.json["allocation_requests"] == []
    assert answer.headers["X-Roost-Reason"] == found["reason"]["text"]


@pytest.mark.parametrize("amount", ["9" * 3000, str(2**63), str(2**31)])
def test_an_enormous_amount_is_explained(api: ApiClient, amount: str) -> None:
    build_world(api, "H1(VCPU 8)")
    (miss,) = explained(api, f"VCPU:{amount}")["misses"]
    # `max_unit` and room are both exceeded.
    assert [lack["stage"] for lack in miss["lacks"]] == ["unit", "room"]
    assert all(lack["wanted"] > lack["free"] == 8 for lack in miss["lacks"])


@pytest.mark.parametrize("accept", ["text/html", "text/html,application/json;q=0.5", "image/png"])
@pytest.mark.parametrize("path", ["/roost/explain?resources=NOPE", "/roost/nowhere"])
def test_errors_are_json_whatever_the_client_prefers(
    api: ApiClient, path: str, accept: str
) -> None:
    answer = api.at("1.0").get(path, accept=accept)
    assert answer.status in (400, 404, 406)
    assert answer.headers["content-type"] == "application/json"
    assert answer.error["code"].startswith("placement.")
