"""`roost doctor`: what it finds, the command that mends each finding, and its exit status."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from roost.cli.cloud.doctor import inventory_findings
from roost.client.reading.cloud_provider import CloudProvider
from support.client.live_providers import LiveProviders
from support.roost_command import roost
from support.stubs.placement_stub import PlacementStub, Received, Reply, closed_port_url
from support.transports.tampering import one_server

SHARING = "MISC_SHARES_VIA_AGGREGATE"
BODY = {"uuid": "u1", "name": "host 1", "parent_provider_uuid": None, "root_provider_uuid": "u1"}


def set_inventory(providers: LiveProviders, short: str, **fields: Any) -> None:
    body = {
        "resource_provider_generation": providers.generation(short),
        "inventories": {"VCPU": fields},
    }
    providers.send("PUT", providers.path(short, "inventories"), body)


def found(*arguments: str) -> dict[str, dict[str, Any]]:
    """The findings about some trees, by check."""
    outcome = roost("doctor", *arguments, "--json")
    findings = outcome.json["findings"]
    ill = any(one["severity"] != "note" for one in findings)
    assert (outcome.status, outcome.json["healthy"]) == (3 if ill else 0, not ill)
    return {one["check"]: one for one in findings}


# -- single providers


@pytest.mark.parametrize(
    ("fields", "used", "check", "options"),
    [
        ({"total": 8}, 9, "over-capacity", None),
        ({"total": 8, "reserved": 4}, 6, "over-capacity", "VCPU:reserved=2"),
        (
            *({"total": 8, "reserved": 4, "allocation_ratio": 2.0}, 9),
            *("over-capacity", "VCPU:reserved=3"),
        ),
        ({"total": 8, "allocation_ratio": 0.0}, 0, "no-ratio", "VCPU:allocation_ratio=1"),
        ({"total": 8, "reserved": 9}, 0, "reserved-above-total", "VCPU:reserved=8"),
        ({"total": 8, "max_unit": 0}, 0, "no-amount-allowed", "VCPU:max_unit=8"),
        ({"total": 8, "min_unit": 5, "max_unit": 6, "step_size": 4}, 0, "no-amount-allowed", None),
        ({"total": 8, "min_unit": 9}, 0, "smallest-amount-above-capacity", "VCPU:min_unit=1"),
        ({"total": 8, "step_size": 16}, 0, "smallest-amount-above-capacity", "VCPU:step_size=1"),
        (
            *({"total": 1, "allocation_ratio": 0.5}, 0),
            *("smallest-amount-above-capacity", "VCPU:allocation_ratio=1"),
        ),
        (
            *({"total": 3, "reserved": 2, "min_unit": 2, "allocation_ratio": 0.5}, 0),
            *("smallest-amount-above-capacity", "VCPU:allocation_ratio=1"),
        ),
        (None, 3, "allocation-without-inventory", "VCPU=3"),
    ],
)
def test_each_fault_of_an_inventory_has_its_finding(
    fields: dict[str, Any] | None, used: int, check: str, options: str | None
) -> None:
    provider = CloudProvider(
        BODY,
        {} if fields is None else {"VCPU": fields},
        allocations={"c1": {"VCPU": used}} if used else {},
    )
    (finding,) = inventory_findings(provider)
    assert finding.check == check
    words = shlex.split(finding.command)
    assert words[0] == "roost"
    assert "host 1" in words
    assert options is None or options in words
    if check == "smallest-amount-above-capacity":
        assert fields is not None
        settings = (word.removeprefix("VCPU:").split("=") for word in words if "=" in word)
        mended = {**fields, **{field: float(value) for field, value in settings}}
        assert list(inventory_findings(CloudProvider(BODY, {"VCPU": mended}))) == []


@pytest.mark.parametrize(
    ("fields", "used", "words"),
    [
        (
            {"total": 2**20},
            2**20 + 1,
            "consumers hold 1,048,577 VCPU, and its capacity is 1,048,576.",
        ),
        ({"total": 9, "allocation_ratio": 1.5}, 14, "and its capacity is 13."),
        ({"total": 2**21, "reserved": 2**22}, 0, "reserved of VCPU is 4,194,304, and its total is"),
        ({"total": 2**21, "min_unit": 2**22}, 0, "is 4,194,304, and its capacity is 2,097,152."),
        ({"total": 8, "allocation_ratio": -0.00001}, 0, "allocation_ratio of VCPU is -0.00001, so"),
    ],
)
def test_a_finding_has_whole_amounts_and_no_exponents(
    fields: dict[str, Any], used: int, words: str
) -> None:
    held = {"c1": {"VCPU": used}} if used else {}
    provider = CloudProvider(BODY, {"VCPU": fields}, allocations=held)
    (finding,) = inventory_findings(provider)
    assert words in finding.text
    assert "e+" not in finding.command


@pytest.mark.parametrize(
    ("fields", "used"),
    [
        ({"total": 8}, 8),
        # A host that an operator drains has all of it reserved.
        ({"total": 8, "reserved": 8}, 0),
        ({"total": 8, "min_unit": 2, "step_size": 2, "max_unit": 4}, 4),
        ({"total": 9, "allocation_ratio": 1.5}, 13),
    ],
)
def test_a_sound_inventory_has_no_finding(fields: dict[str, Any], used: int) -> None:
    provider = CloudProvider(BODY, {"VCPU": fields}, allocations={"c1": {"VCPU": used}})
    assert list(inventory_findings(provider)) == []


def test_the_command_of_a_finding_mends_it(live_providers: LiveProviders) -> None:
    live_providers.add("host", totals={"VCPU": 8})
    live_providers.claim("instance", host={"VCPU": 6})
    host = live_providers.name("host")
    assert found(host) == {}
    set_inventory(live_providers, "host", total=8, reserved=4)
    finding = found(host)["over-capacity"]
    assert finding["provider"] == {"uuid": live_providers.uuid("host"), "name": host}
    assert finding["text"] == f"{host}: consumers hold 6 VCPU, and its capacity is 4."
    assert roost(*shlex.split(finding["command"])[1:]).status == 0
    assert found(host) == {}


# -- the cloud


def test_sharing_providers_that_lend_to_no_tree_are_found(live_providers: LiveProviders) -> None:
    live_providers.add("pool", totals={"DISK_GB": 100}, traits=[SHARING])
    pool = live_providers.name("pool")
    assert found(pool)["sharing-without-aggregate"]["severity"] == "fault"
    live_providers.set_aggregates("pool", "rack")
    finding = found(pool)["sharing-reaches-no-tree"]
    assert finding["severity"] == "warning"
    live_providers.add("host", totals={"VCPU": 1})
    command = finding["command"].replace("HOST", live_providers.name("host"))
    assert roost(*shlex.split(command)[1:]).status == 0
    assert found(pool) == {}


def test_names_without_use_are_notes(live_providers: LiveProviders) -> None:
    trait, resource_class = live_providers.custom("GOLD"), live_providers.custom("FPGA")
    roost("trait", "create", trait)
    roost("class", "create", resource_class)
    outcome = roost("doctor", "--json")
    by_check = {one["check"]: one for one in outcome.json["findings"]}
    assert by_check["trait-on-no-provider"]["severity"] == "note"
    assert by_check["class-without-inventory"]["severity"] == "note"
    assert roost("trait", "delete", trait).status == 0
    assert roost("class", "delete", resource_class).status == 0


@one_server
def test_an_empty_tree_and_a_host_with_two_names_are_found(live_providers: LiveProviders) -> None:
    short = live_providers.name("host")
    live_providers.add("host", totals={"VCPU": 8})
    body = {"uuid": live_providers.uuid("long"), "name": f"{short}.example"}
    live_providers.send("POST", "/resource_providers", body)
    live_providers.claim("instance", host={"VCPU": 1})
    findings = found(short, f"{short}.example")
    assert findings["tree-without-inventory"]["provider"]["name"] == f"{short}.example"
    assert findings["one-host-two-providers"]["command"] == (
        f"roost provider delete {short}.example --with-children --dry-run"
    )


@one_server
def test_the_consumers_of_two_namesakes_are_those_of_their_trees(
    live_providers: LiveProviders,
) -> None:
    short, long = live_providers.name("host"), f"{live_providers.name('host')}.example"
    for name, top in ((short, "host"), (long, "long")):
        live_providers.send(
            "POST", "/resource_providers", {"name": name, "uuid": live_providers.uuid(top)}
        )
        live_providers.add(f"numa-{top}", top, totals={"VCPU": 8})
    # A host with NUMA nodes has its allocations below the root.
    live_providers.claim("first", **{"numa-host": {"VCPU": 1}})
    finding = found(short, long)["one-host-two-providers"]
    assert finding["provider"]["name"] == long
    assert finding["command"] == f"roost provider delete {long} --with-children --dry-run"
    assert f"{short} (1 consumer) and {long} (0 consumers) look like" in finding["text"]

    live_providers.claim("second", **{"numa-host": {"VCPU": 1}, "numa-long": {"VCPU": 1}})
    finding = found(short, long)["one-host-two-providers"]
    # Neither can be deleted before its consumers move.
    assert finding["command"] == f"roost consumer list --provider {long}"
    assert f"{short} (2 consumers) and {long} (1 consumer) look like" in finding["text"]


# -- the server


def test_a_healthy_server_says_what_it_is(live_providers: LiveProviders) -> None:
    live_providers.add("host", totals={"VCPU": 8})
    outcome = roost("doctor", live_providers.name("host"))
    assert outcome.status == 0
    first, second, _, last = outcome.lines
    assert first.startswith("http://127.0.0.1:")
    assert ": placement up to 1.39, " in first
    assert second == "1 provider in 1 tree, 0 consumers"
    assert last == "Nothing is wrong."


def test_a_server_that_is_down_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    with closed_port_url() as url:
        monkeypatch.setenv("ROOST_URL", url)
        outcome = roost("doctor", "--output", "csv")
    assert outcome.status == 3
    (row,) = outcome.lines[1:]
    assert row.startswith("fault,unreachable,,")
    assert outcome.err == ""


VERSIONS = {"versions": [{"max_version": "1.39"}]}
NOT_READY = {
    "status": "not ready",
    "version": "0.1.0",
    "checks": {"database": {"ok": False, "text": "The database does not answer."}},
}


@pytest.mark.parametrize(
    ("versions", "ready", "list_status", "checks"),
    [
        (VERSIONS, Reply(503, body=NOT_READY), 200, {"not-ready-database"}),
        (VERSIONS, Reply(404, body={}), 401, {"refused"}),
        (VERSIONS, Reply(404, body={}), 500, {"failed"}),
        ({"versions": [{"max_version": "1.20"}]}, Reply(404, body={}), 200, {"old-version"}),
        ({"hello": "world"}, Reply(404, body={}), 200, {"unreachable"}),
    ],
    ids=["not ready", "refused", "failed", "old", "no placement server"],
)
def test_what_a_server_says_becomes_findings(
    monkeypatch: pytest.MonkeyPatch,
    versions: dict[str, Any],
    ready: Reply,
    list_status: int,
    checks: set[str],
) -> None:
    def answer(request: Received) -> Reply:
        if request.path == "/":
            return Reply(body=versions)
        if request.path == "/readyz":
            return ready
        if request.path.startswith("/roost/"):
            return Reply(404, body={})
        if request.path == "/resource_providers":
            return Reply(list_status, body={"resource_providers": []})
        empty: dict[str, Any] = {"traits": [], "usages": {}, "resource_classes": []}
        return Reply(body=empty)

    with PlacementStub(otherwise=answer) as stub:
        monkeypatch.setenv("ROOST_URL", stub.url)
        assert found().keys() == checks


def test_what_a_refused_doctor_did_not_see_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    refusal = {"errors": [{"detail": "Access was denied.\n\n A role is missing.  "}]}

    def answer(request: Received) -> Reply:
        return Reply(body=VERSIONS) if request.path == "/" else Reply(403, body=refusal)

    with PlacementStub(otherwise=answer) as stub:
        monkeypatch.setenv("ROOST_URL", stub.url)
        drawn, value = roost("doctor"), roost("doctor", "--json").json
    assert drawn.lines[1] == "The number of providers is unknown."
    assert "Access was denied. A role is missing." in drawn.out
    assert [value[name] for name in ("providers", "trees", "consumers")] == [None] * 3


def test_a_quick_doctor_counts_no_consumers(live_providers: LiveProviders) -> None:
    live_providers.add("host", totals={"VCPU": 8})
    live_providers.claim("instance", host={"VCPU": 1})
    outcome = roost("doctor", live_providers.name("host"), "--quick")
    assert outcome.lines[1] == "1 provider in 1 tree"
