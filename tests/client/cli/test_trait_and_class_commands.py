"""`roost trait` and `roost class`: lists, providers, creation and deletion."""

from __future__ import annotations

from typing import Any

import pytest

from support.client.live_providers import LiveProviders
from support.roost_command import roost
from support.stubs.placement_stub import PlacementStub, Received, Reply, Step
from support.transports.tampering import one_server


@pytest.mark.parametrize("noun", ["trait", "class"])
def test_names_are_created_and_deleted(live_providers: LiveProviders, noun: str) -> None:
    old, new = live_providers.custom("OLD"), live_providers.custom("NEW")
    assert roost(noun, "create", old).lines == [f"{old}: created"]

    planned = roost(noun, "create", old, new, "--dry-run")
    assert (planned.lines, planned.err) == (
        [f"{new}: would be created"],
        "1 change would be made\n",
    )
    assert roost(noun, "list", new, "--json").json == []
    assert roost(noun, "create", old, new).lines == [f"{new}: created"]
    (row,) = roost(noun, "list", new, "--json").json
    assert row["custom"] is True

    assert roost(noun, "delete", new, old, "--dry-run").status == 0
    assert len(roost(noun, "list", f"*{live_providers.custom('')[7:]}", "--json").json) == 2
    assert roost(noun, "delete", new, old).lines == [f"{new}: deleted", f"{old}: deleted"]
    missing = roost(noun, "delete", new)
    assert missing.status == 1
    assert missing.err.splitlines()[-1] == f"Next: roost {noun} list --custom"


@one_server
@pytest.mark.parametrize("noun", ["trait", "class"])
@pytest.mark.parametrize("verb", ["create", "delete"])
def test_only_custom_names_are_created_or_deleted(
    live_providers: LiveProviders, noun: str, verb: str
) -> None:
    del live_providers
    for name in ("VCPU", "CUSTOM_gold", "CUSTOM_"):
        outcome = roost(noun, verb, name)
        assert outcome.status == 1
        assert f"{name} is no custom" in outcome.err
        assert outcome.err.splitlines()[-1] == f"Next: roost {noun} list"


def test_a_trait_that_providers_have_is_not_deleted(live_providers: LiveProviders) -> None:
    name = live_providers.custom("GOLD")
    roost("trait", "create", name)
    live_providers.add("host", traits=[name])
    for arguments in (["--dry-run"], []):
        outcome = roost("trait", "delete", name, *arguments)
        assert outcome.status == 1
        assert f"is on 1 provider ({live_providers.name('host')})" in outcome.err
        assert outcome.err.splitlines()[-1] == (
            f"Next: roost provider set {live_providers.name('host')} --remove-trait {name} "
            "--dry-run"
        )
    shown = roost("trait", "show", name, "--json").json
    assert shown["providers"] == [
        {"uuid": live_providers.uuid("host"), "name": live_providers.name("host")}
    ]
    assert roost("trait", "list", name, "--unused", "--json").json == []
    (row,) = roost("trait", "list", name, "--in-use", "--json").json
    assert row["in_use"] is True


def test_a_class_that_providers_offer_is_not_deleted(live_providers: LiveProviders) -> None:
    name = live_providers.custom("FPGA")
    roost("class", "create", name)
    live_providers.add("host", totals={name: 8})
    live_providers.claim("instance", host={name: 3})
    for arguments in (["--dry-run"], []):
        outcome = roost("class", "delete", name, *arguments)
        assert outcome.status == 1
        assert f"{name} cannot be deleted" in outcome.err
        assert outcome.err.splitlines()[-1] == f"Next: roost class show {name}"
    assert roost("class", "show", name).lines[1].split() == [
        *(live_providers.name("host"), "3", "8", live_providers.uuid("host")),
    ]


class _RefusingStub(PlacementStub):
    """A server with the names of three custom traits and classes, which are in no use."""

    names = ("CUSTOM_A", "CUSTOM_B", "CUSTOM_C")

    def __init__(self, **writes: Step) -> None:
        """`writes` has the step for a write of a name; any other write succeeds."""
        super().__init__(otherwise=self._answer)
        self._writes = writes

    def _answer(self, request: Received) -> Step:
        if request.method != "GET":
            return self._writes.get(request.path.rpartition("/")[2], Reply(204))
        there: dict[str, Any] = {
            "/": {"versions": [{"max_version": "1.39"}]},
            "/traits": {"traits": list(self.names)},
            "/resource_classes": {"resource_classes": [{"name": name} for name in self.names]},
        }
        return Reply(body=there.get(request.path.partition("?")[0], {"resource_providers": []}))


@pytest.mark.parametrize("noun", ["trait", "class"])
@pytest.mark.parametrize(
    ("step", "second"),
    [
        (Reply(409, body={"errors": [{"detail": "in use"}]}), "CUSTOM_B: not deleted"),
        (Reply(500, body={"errors": [{"detail": "oops"}]}), "CUSTOM_B: perhaps deleted"),
    ],
    ids=["refused", "unknown"],
)
def test_deletions_before_an_error_are_told_and_the_rest_is_named(
    noun: str, step: Step, second: str
) -> None:
    with _RefusingStub(CUSTOM_B=step) as stub:
        command = (noun, "delete", *stub.names, "--url", stub.url)
        outcome = roost(*command)
        as_json = roost(*command, "--json")
    assert (outcome.status, outcome.lines) == (1, ["CUSTOM_A: deleted"])
    lines = outcome.err.splitlines()
    assert lines[:3] == ["1 change made", second, "CUSTOM_C: not deleted"]
    assert lines[3].startswith("roost: ")
    assert "CUSTOM_B" in lines[3]
    key = "trait" if noun == "trait" else "resource_class"
    assert (as_json.status, as_json.json) == (1, {"dry_run": False, "changes": [{key: "CUSTOM_A"}]})


@pytest.mark.parametrize("noun", ["trait", "class"])
def test_creations_before_an_error_are_told(noun: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_RefusingStub, "names", ("VCPU",))
    with _RefusingStub(CUSTOM_B=Reply(400, body={"errors": [{"detail": "no"}]})) as stub:
        outcome = roost(noun, "create", "CUSTOM_A", "CUSTOM_B", "--url", stub.url)
    assert (outcome.status, outcome.lines) == (1, ["CUSTOM_A: created"])
    assert "CUSTOM_B: not created" in outcome.err


@one_server
@pytest.mark.parametrize(
    ("command", "near", "following"),
    [
        ("trait show HW_CPU_X86_AVX22", "HW_CPU_X86_AVX2", "roost trait list"),
        ("class show VCPUS", "VCPU", "roost class list"),
        ("class show CUSTOM_NOT_THERE", "No resource class", "roost class create CUSTOM_NOT_THERE"),
    ],
)
def test_an_unknown_name_is_answered_with_near_ones(
    live_providers: LiveProviders, command: str, near: str, following: str
) -> None:
    del live_providers
    outcome = roost(*command.split())
    assert outcome.status == 1
    assert near in outcome.err
    assert outcome.err.splitlines()[-1] == f"Next: {following}"
