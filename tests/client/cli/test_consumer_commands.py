"""`roost consumer` and `roost usage`: what consumers hold, and what is used in all."""

from __future__ import annotations

import json
from typing import Any

import pytest

from roost.client.errors import NotOffered, QuestionRefused
from roost.client.questions import Questions, ServerQuestion, ask_totals
from roost.client.reading.cloud_reader import CloudReader
from support.client.live_providers import LiveProviders
from support.roost_command import roost
from support.stubs.placement_stub import PlacementStub, Received, Reply
from support.transports.tampering import one_server


@pytest.fixture
def host(live_providers: LiveProviders) -> LiveProviders:
    """A host with a GPU, and two consumers of two projects."""
    live_providers.add("host", totals={"VCPU": 16})
    live_providers.add("gpu", "host", totals={"VGPU": 4})
    live_providers.claim("first", host={"VCPU": 6}, gpu={"VGPU": 1})
    body = {
        "allocations": {live_providers.uuid("host"): {"resources": {"VCPU": 2}}},
        "project_id": live_providers.name("project"),
        "user_id": "ann",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    live_providers.send("PUT", f"/allocations/{live_providers.uuid('second')}", body)
    return live_providers


def test_consumers_are_listed_with_what_they_hold(
    host: LiveProviders, request: pytest.FixtureRequest
) -> None:
    outcome = roost("consumer", "list", "--provider", host.name("host"), "--json")
    found = {host.short(one["consumer"]): one for one in outcome.json}
    assert found.keys() == {"first", "second"}
    assert {one["provider"]["name"]: one for one in found["first"]["allocations"]} == {
        host.name(short): {
            "provider": {"uuid": host.uuid(short), "name": host.name(short)},
            "resources": resources,
        }
        for short, resources in (("host", {"VCPU": 6}), ("gpu", {"VGPU": 1}))
    }
    assert (found["second"]["type"], found["first"]["type"]) == ("INSTANCE", None)
    is_roost = request.node.callspec.params["server"] == "roost"
    how = "the oldest first" if is_roost else "gathered from the allocations of 2 providers"
    assert f"2 consumers, {how}." in outcome.err


@one_server
def test_consumers_are_chosen_by_provider_project_user_and_type(host: LiveProviders) -> None:
    def chosen(*arguments: str) -> list[str]:
        rows = roost("consumer", "list", "--json", *arguments).json
        return sorted(host.short(row["consumer"]) for row in rows)

    top = ("--provider", host.name("host"))
    assert chosen("--provider", host.name("gpu")) == ["first"]
    assert chosen(*top, "--project", host.name("project")) == ["second"]
    assert chosen(*top, "--user", "user") == ["first"]
    assert chosen(*top, "--type", "INSTANCE") == ["second"]
    assert chosen(*top, "--type", "MIGRATION") == []
    assert chosen(*top, "--older-than", "1h") == []
    assert chosen(*top, "--older-than", "0") == ["first", "second"]


@one_server
def test_consumers_are_listed_by_age_or_by_size(host: LiveProviders) -> None:
    def listed(*arguments: str) -> list[str]:
        rows = roost("consumer", "list", "--json", *arguments).json
        return [host.short(row["consumer"]) for row in rows]

    # A consumer of two of the providers is listed once.
    host.add("elsewhere", totals={"VCPU": 8})
    host.claim("first", host={"VCPU": 1}, elsewhere={"VCPU": 1})
    host.claim("third", elsewhere={"VCPU": 7})
    both = ("--provider", host.name("host"), "--provider", host.name("elsewhere"))
    assert listed("--provider", host.name("elsewhere")) == ["first", "third"]
    assert listed(*both, "--order", "size") in (
        ["third", "first", "second"],
        ["third", "second", "first"],
    )
    assert listed(*both, "--order", "size", "--limit", "1") == ["third"]
    wrong = roost("consumer", "list", "--older-than", "soon")
    assert (wrong.status, wrong.out) == (1, "")
    assert "older_than is 'soon'" in wrong.err


def test_filters_go_to_the_server_and_no_provider_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bodies = {
        "/": {"versions": [{"max_version": "1.39"}]},
        "/resource_providers": {"resource_providers": []},
        "/roost/consumers": {"consumers": [], "next": None},
    }
    with PlacementStub(
        otherwise=lambda request: Reply(body=bodies[request.path.partition("?")[0]])
    ) as stub:
        monkeypatch.setenv("ROOST_URL", stub.url)
        words = ("--type", "unknown", "--project", "shop", "--user", "ann", "--limit", "7")
        assert roost("consumer", "list", *words).status == 0
    query = "type=unknown&project=shop&user=ann&page_limit=8"
    assert f"GET /roost/consumers?{query}" in stub.asked
    assert len(stub.asked) == 2


def test_a_limit_counts_no_consumer_that_holds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def row(number: int, **held: int) -> dict[str, Any]:
        rack = {"uuid": "c0ffee00-0000-0000-0000-000000000001", "name": "rack"}
        return {
            "consumer": f"c0ffee00-0000-0000-0000-{number:012}",
            **dict.fromkeys(("consumer_type", "created_at")),
            **dict.fromkeys(("project_id", "user_id"), "shop"),
            "generation": 1,
            "size": 0.5,
            "allocations": [{"provider": rack, "root": rack, "resources": held}] if held else [],
        }

    pages = {
        "page_limit=3": {"consumers": [row(1), row(2), row(3, VCPU=1)], "next": "3"},
        "page_limit=3&marker=3": {"consumers": [row(4), row(5), row(6)], "next": "6"},
        "page_limit=3&marker=6": {
            "consumers": [row(7, VCPU=2), row(8, VCPU=3), row(9)],
            "next": "9",
        },
    }

    def answer(request: Received) -> Reply:
        path, _, query = request.path.partition("?")
        if path == "/roost/consumers":
            return Reply(body=pages[query])
        return Reply(body={"versions": [{"max_version": "1.39"}]})

    with PlacementStub(otherwise=answer) as stub:
        monkeypatch.setenv("ROOST_URL", stub.url)
        outcome = roost("consumer", "list", "--limit", "2", "--json")
    assert [one["consumer"][-1] for one in outcome.json] == ["3", "7"]
    assert outcome.json[1]["allocations"][0]["provider"]["name"] == "rack"
    assert outcome.err.splitlines() == [
        "2 consumers, the oldest first.",
        "There are more such consumers: --limit 0 lists all.",
    ]
    # The list has all that the command shows, and the command asks for no page in vain.
    assert len(stub.asked) == 4


@pytest.mark.parametrize("way", ["a list", "an older list", "providers"])
def test_consumers_are_the_same_from_a_list_and_from_providers(
    host: LiveProviders, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    words = ("consumer", "list", "--provider", host.name("host"), "--json")
    projects = ("usage", "--by-project", "--in-tree", host.name("gpu"), "--json")

    def asked() -> list[Any]:
        found = roost(*words).json
        typed = roost(*words, "--type", "unknown").json
        listed = [sorted(rows, key=lambda one: one["consumer"]) for rows in (found, typed)]
        return [*listed, roost(*projects).json]

    expected = asked()
    assert [len(rows) for rows in expected] == [2, 1, 2]
    page = Questions._page

    def older(server: Questions, question: ServerQuestion) -> dict[str, Any]:
        if way == "providers":
            raise NotOffered("The server does not offer it", question.path)
        answer = page(server, question)
        for row in answer["consumers"] if way == "an older list" else ():
            del row["allocations"]
        return answer

    monkeypatch.setattr(Questions, "_page", older)
    assert asked() == expected


def test_a_caller_without_the_right_to_the_list_asks_providers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def answer(request: Received) -> Reply:
        if request.path.startswith("/roost/"):
            return Reply(403, {"errors": [{"detail": "Not for this role."}]})
        version = {"max_version": "1.39"}
        return Reply(body={"versions": [version], "resource_providers": []})

    with PlacementStub(otherwise=answer) as stub:
        monkeypatch.setenv("ROOST_URL", stub.url)
        listed = roost("consumer", "list")
        aged = roost("consumer", "list", "--order", "age")
    assert listed.status == 0
    assert listed.err == "0 consumers, gathered from the allocations of 0 providers.\n"
    assert aged.status == 1
    assert "Not for this role." in aged.err


@pytest.mark.parametrize("server", ["reference"], indirect=True)
@pytest.mark.parametrize("option", [["--older-than", "1d"], ["--order", "age"]], ids=" ".join)
def test_a_server_without_ages_is_told(host: LiveProviders, option: list[str]) -> None:
    outcome = roost("consumer", "list", "--provider", host.name("host"), *option)
    assert (outcome.status, outcome.out) == (1, "")
    assert "This server is no Roost server" in outcome.err
    assert outcome.err.rstrip().endswith("Next: roost consumer list")


@one_server
def test_a_limit_counts_the_chosen_consumers_only(host: LiveProviders) -> None:
    others = [f"other-{number}" for number in range(6)]
    for short in others:
        host.claim(short, host={"VCPU": 1})
    chosen = ("consumer", "list", "--provider", host.name("host"), "--user", "user", "--json")

    def listed(*arguments: str) -> tuple[list[str], bool]:
        outcome = roost(*chosen, *arguments)
        assert outcome.status == 0, outcome.err
        rows = [host.short(row["consumer"]) for row in outcome.json]
        return rows, "There are more such consumers: --limit 0 lists all." in outcome.err

    everything = ["first", *others]
    assert listed("--limit", "3") == (everything[:3], True)
    assert listed("--limit", "6") == (everything[:6], True)
    assert listed("--limit", "7") == (everything, False)
    assert listed("--limit", "0") == (everything, False)
    ann = roost(
        "consumer", "list", "--provider", host.name("host"), "--user", "ann", "--limit", "1"
    )
    assert len(ann.lines) == 2
    assert ann.err == "1 consumer, the oldest first.\n"


def test_a_consumer_is_shown_with_the_names_of_its_providers(host: LiveProviders) -> None:
    shown = roost("consumer", "show", host.uuid("first").upper())
    assert shown.lines[:5] == [
        f"consumer    {host.uuid('first')}",
        "project     project",
        "user        user",
        "type        -",
        "generation  1",
    ]
    assert shown.lines[-1].split() == [host.name("host"), host.uuid("host"), "VCPU", "6"]


@one_server
@pytest.mark.parametrize(
    ("consumer", "status", "words", "command"),
    [
        ("unknown", 1, "holds nothing", "roost consumer list"),
        ("vm-1", 2, "vm-1 is no uuid", "openstack server show NAME -c id"),
    ],
)
def test_a_consumer_that_is_not_there_is_explained(
    host: LiveProviders, consumer: str, status: int, words: str, command: str
) -> None:
    outcome = roost("consumer", "show", host.uuid(consumer) if status == 1 else consumer)
    assert outcome.status == status
    assert words in outcome.err
    assert outcome.err.splitlines()[-1] == f"Next: {command}"


# -- usage


def test_usage_of_a_tree_is_summed_by_class(host: LiveProviders) -> None:
    rows = roost("usage", "--in-tree", host.name("gpu"), "--json").json
    assert rows == [
        {
            "resource_class": name,
            "used": used,
            "capacity": capacity,
            "free": capacity - used,
            "reserved": 0,
            "providers": 1,
        }
        for name, used, capacity in (("VCPU", 8, 16), ("VGPU", 1, 4))
    ]
    drawn = roost("usage", "--in-tree", host.name("host")).lines
    assert drawn[1].split() == ["VCPU", "█" * 5 + "░" * 5, "8", "16", "8", "0", "1"]


@pytest.mark.parametrize(
    "refusal",
    [NotOffered("an older server", "/roost/overview"), QuestionRefused("a policy", status=403)],
    ids=["older", "forbidden"],
)
def test_usage_of_the_cloud_is_the_same_from_one_answer_and_from_all_providers(
    host: LiveProviders, monkeypatch: pytest.MonkeyPatch, refusal: Exception
) -> None:
    def refuse(*_: Any) -> dict[str, Any]:
        raise refusal

    shown = [roost("usage", *form).out for form in ([], ["--json"], ["--output", "csv"])]
    monkeypatch.setattr(Questions, "answer", refuse)
    assert shown == [roost("usage", *form).out for form in ([], ["--json"], ["--output", "csv"])]
    (vgpu,) = [row for row in json.loads(shown[1]) if row["resource_class"] == "VGPU"]
    assert vgpu["used"] >= 1


@one_server
def test_usage_of_the_cloud_is_one_request(
    host: LiveProviders, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.add("other", totals={"VCPU": 1})
    asked: list[ServerQuestion] = []
    page = Questions._page

    def noting(server: Questions, question: ServerQuestion) -> dict[str, Any]:
        asked.append(question)
        return page(server, question)

    def fail(*_: Any) -> list[Any]:
        raise AssertionError("Roost tells totals in one answer")

    monkeypatch.setattr(Questions, "_page", noting)
    monkeypatch.setattr(CloudReader, "providers", fail)
    assert roost("usage").status == 0
    # The answer has a further page of roots, and the command needs none of them.
    assert asked == [ask_totals()]


@one_server
def test_an_answer_that_cannot_be_read_is_no_reason_to_ask_all_providers(
    host: LiveProviders, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> dict[str, Any]:
        raise QuestionRefused("The server did not answer", status=400)

    monkeypatch.setattr(Questions, "answer", refuse)
    assert roost("usage").status == 1


def test_usage_of_a_project_is_one_request(host: LiveProviders) -> None:
    found = roost("usage", "--project", host.name("project"), "--json").json
    assert found["usages"] == {"INSTANCE": {"VCPU": 2, "consumer_count": 1}}
    lines = roost("usage", "--project", host.name("project"), "--user", "ann").lines
    assert [line.split() for line in lines[1:]] == [["INSTANCE", "VCPU", "2"]]
    nothing = roost("usage", "--project", host.name("project"), "--user", "bob")
    assert (len(nothing.lines), nothing.status) == (1, 0)
    assert "uses nothing, or does not exist" in nothing.err


@one_server
def test_usage_by_project_counts_only_the_chosen_tree(host: LiveProviders) -> None:
    host.add("elsewhere", totals={"VCPU": 8})
    host.claim("first", host={"VCPU": 6}, gpu={"VGPU": 1}, elsewhere={"VCPU": 1})
    found = roost("usage", "--by-project", "--in-tree", host.name("host"), "--json").json
    assert found == [
        {"project": "project", "consumers": 1, "usages": {"VCPU": 6, "VGPU": 1}},
        {"project": host.name("project"), "consumers": 1, "usages": {"VCPU": 2}},
    ]


@pytest.mark.parametrize(
    "arguments", [["--user", "ann"], ["--project", "x", "--by-project"]], ids=" ".join
)
def test_options_of_usage_that_contradict_each_other_are_refused(arguments: list[str]) -> None:
    assert roost("usage", *arguments).status == 2
