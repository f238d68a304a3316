"""`roost claim` and `roost move`: what consumers hold, by a search or on named providers."""

from __future__ import annotations

import json

import pytest

from support.client.live_providers import LiveProviders
from support.roost_command import Outcome, roost
from support.servers.live_server import LiveServer
from support.stubs.placement_stub import HangUp, Received, Step
from support.stubs.word_stub import ROOT, WordStub
from support.transports.tampering import one_server


@pytest.fixture
def cloud(live_providers: LiveProviders) -> LiveProviders:
    """Two hosts with a class of their own, which no other test claims."""
    cpu = live_providers.custom("CPU")
    assert roost("class", "create", cpu).status == 0
    live_providers.add("first", totals={cpu: 8})
    live_providers.add("second", totals={cpu: 8})
    return live_providers


def cpu(cloud: LiveProviders, amount: int) -> str:
    return f"{cloud.custom('CPU')}={amount}"


def taken(cloud: LiveProviders, consumer: str) -> dict[str, int]:
    return {host: its[cloud.custom("CPU")] for host, its in cloud.taken(consumer).items()}


def changes_of(outcome: Outcome) -> dict[str, object]:
    assert outcome.status == 0, outcome.err
    (change,) = outcome.json["changes"]
    found: dict[str, object] = change
    return found


def test_a_claim_takes_a_candidate_and_names_the_consumer(cloud: LiveProviders) -> None:
    uuid = cloud.uuid("instance")
    made = roost("claim", cpu(cloud, 3), "--in-tree", cloud.name("second"), "--consumer", uuid)
    assert made.status == 0, made.err
    assert made.lines == [f"{uuid}: claimed: {cpu(cloud, 3)} of {cloud.name('second')}"]
    assert made.err.splitlines()[-1] == "1 change made"
    assert taken(cloud, "instance") == {"second": 3}


def test_a_new_consumer_is_printed_for_scripts(cloud: LiveProviders) -> None:
    (uuid,) = roost("claim", cpu(cloud, 1), "--in-tree", cloud.name("first"), "-o", "name").lines
    shown = roost("consumer", "show", uuid, "--json")
    assert shown.json["allocations"][0]["resources"] == {cloud.custom("CPU"): 1}
    assert roost("release", uuid, "-o", "name").lines == [uuid]


def test_project_user_and_type_belong_to_the_consumer(cloud: LiveProviders) -> None:
    owners = ("--project", "shop", "--user", "ann", "--type", "INSTANCE")
    change = changes_of(roost("claim", cpu(cloud, 1), *owners, "--json"))
    assert (change["project"], change["user"], change["type"]) == ("shop", "ann", "INSTANCE")
    assert roost("release", str(change["consumer"])).status == 0


def test_a_claim_on_named_providers_takes_from_each(cloud: LiveProviders) -> None:
    uuid = cloud.uuid("instance")
    first, second = ("--on", cloud.name("first")), ("--on", cloud.uuid("second"))
    words = (*first, cpu(cloud, 2), *second, cpu(cloud, 5), "--consumer", uuid)
    assert roost("claim", *words).status == 0
    assert taken(cloud, "instance") == {"first": 2, "second": 5}
    again = roost("claim", *words, "--json")
    assert changes_of(again)["repeated"] is True
    assert f"{uuid} holds exactly this already." in again.err


@pytest.mark.parametrize("where", ["search", "named"])
def test_a_dry_run_tells_what_would_be_claimed_and_claims_nothing(
    cloud: LiveProviders, where: str
) -> None:
    at_first = {
        "search": (cpu(cloud, 3), "--in-tree", cloud.name("first")),
        "named": ("--on", cloud.name("first"), cpu(cloud, 3)),
    }[where]
    planned = roost("claim", *at_first, "--dry-run")
    held = f"{cpu(cloud, 3)} of {cloud.name('first')}"
    assert planned.lines == [f"a new consumer: would be claimed: {held}"]
    kept = roost("claim", *at_first, "--dry-run", "--json", "--consumer", cloud.uuid("instance"))
    assert kept.json["dry_run"] is True
    assert cloud.taken("instance") == {}


@pytest.mark.parametrize("options", [(), ("--dry-run",)], ids=["made", "planned"])
def test_a_claim_that_is_refused_ends_with_3_and_says_why(
    cloud: LiveProviders, options: tuple[str, ...]
) -> None:
    searched = roost("claim", cpu(cloud, 9), *options)
    assert (searched.status, searched.out) == (3, "")
    assert "no provider has room for it" in searched.err
    assert "Next: roost explain --from-query" in searched.err
    named = roost("claim", "--on", cloud.name("first"), cpu(cloud, 9), *options)
    assert (named.status, named.out) == (3, "")
    assert cloud.uuid("first") in named.err
    assert f"Next: roost provider show {cloud.uuid('first')}" in named.err


@one_server
def test_roost_says_what_the_nearest_hosts_lack(cloud: LiveProviders) -> None:
    refused = roost("claim", cpu(cloud, 9)).err
    assert f"{cloud.name('first')}: " in refused
    assert f"{cloud.name('second')}: " in refused


def test_a_consumer_that_holds_something_claims_nothing_more(cloud: LiveProviders) -> None:
    uuid = cloud.claim("instance", first={cloud.custom("CPU"): 2})
    refused = roost("claim", cpu(cloud, 1), "--consumer", uuid)
    assert (refused.status, refused.out) == (3, "")
    assert "move it, or release it first" in refused.err
    assert taken(cloud, "instance") == {"first": 2}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("claim", "Give a request, such as VCPU=4, or providers: --on NAME VCPU=4."),
        ("claim VCPU=1 --on a VCPU=1", "Give a request, such as VCPU=4, or providers"),
        ("claim --on a", "--on a needs resources behind it"),
        ("claim --on a VCPU=1 --require X", "--require X stands behind --on"),
        ("claim --on a VCPU=1 --on a VCPU=2", "Name each provider once"),
        ("claim --on a VCPU=1 VCPU=2", "VCPU is there twice"),
        ("claim VCPU=1 --consumer me", "me is no uuid"),
        ("move me", "me is no uuid"),
        ("move me --to a VCPU=1 --off b", "leave out request and --off"),
        ("move me --to a VCPU=1 --to b", "--to b needs resources behind it"),
    ],
)
@one_server
def test_wrong_words_are_told_before_anything_is_sent(
    server: LiveServer, words: str, sentence: str
) -> None:
    refused = roost(*words.split(), "--url", "http://127.0.0.1:1")
    assert refused.status == 2, refused.err
    assert sentence in refused.err


def test_a_misspelt_class_is_named_with_those_near_it(cloud: LiveProviders) -> None:
    for words in (("VCPUS=1",), ("--on", cloud.name("first"), "VCPUS=1")):
        refused = roost("claim", *words)
        assert refused.status == 1
        assert "VCPU" in refused.err
        assert "VCPUS" in refused.err


# -- moves


def test_a_move_leaves_the_host_and_says_from_where_to_where(cloud: LiveProviders) -> None:
    uuid = cloud.claim("instance", first={cloud.custom("CPU"): 4})
    held = f"{cpu(cloud, 4)} of {cloud.name('first')} -> {cpu(cloud, 4)} of {cloud.name('second')}"
    assert roost("move", uuid, "--dry-run").lines == [f"{uuid}: would be moved: {held}"]
    assert taken(cloud, "instance") == {"first": 4}
    assert roost("move", uuid).lines == [f"{uuid}: moved: {held}"]
    assert taken(cloud, "instance") == {"second": 4}


def test_a_move_goes_to_the_tree_of_a_provider(cloud: LiveProviders) -> None:
    cloud.add("third", totals={cloud.custom("CPU"): 8})
    uuid = cloud.claim("instance", first={cloud.custom("CPU"): 4})
    assert roost("move", uuid, "--to", cloud.name("third")).status == 0
    assert taken(cloud, "instance") == {"third": 4}
    assert roost("move", uuid, cpu(cloud, 2), "--to", cloud.name("second")).status == 0
    assert taken(cloud, "instance") == {"second": 2}


def test_a_move_goes_to_named_resources_and_counts_its_own_as_free(cloud: LiveProviders) -> None:
    uuid = cloud.claim("instance", first={cloud.custom("CPU"): 6})
    words = ("move", uuid, "--to", cloud.name("first"), cpu(cloud, 8))
    planned = roost(*words, "--dry-run", "--json")
    assert changes_of(planned)["was"] != changes_of(planned)["allocations"]
    assert roost(*words).status == 0
    assert taken(cloud, "instance") == {"first": 8}


def test_a_move_that_is_refused_ends_with_3_and_moves_nothing(cloud: LiveProviders) -> None:
    uuid = cloud.claim("instance", first={cloud.custom("CPU"): 6})
    cloud.claim("other", second={cloud.custom("CPU"): 6})
    for words in (
        (),
        ("--to", cloud.name("second")),
        ("--to", cloud.name("second"), cpu(cloud, 3)),
    ):
        for options in ((), ("--dry-run",)):
            refused = roost("move", uuid, *words, *options)
            assert (refused.status, refused.out) == (3, ""), (words, refused.err)
    assert taken(cloud, "instance") == {"first": 6}


def test_a_consumer_that_holds_nothing_has_nothing_to_move(cloud: LiveProviders) -> None:
    refused = roost("move", cloud.uuid("nothing"))
    assert refused.status == 1
    assert "so there is nothing to move" in refused.err


# -- what stays unknown


class LosingStub(WordStub):
    """A server that hangs up after each write, and answers reads."""

    def answer(self, request: Received) -> Step:
        is_read = request.method == "GET" or "whatif" in request.path
        return super().answer(request) if is_read else HangUp()


def test_an_unknown_outcome_is_told_as_unknown() -> None:
    with LosingStub() as stub:
        new = "22222222-0000-4000-8000-000000000001"
        words = ("claim", "--on", ROOT, "CUSTOM_OLD=1", "--consumer", new, "--url", stub.url)
        lost = roost(*words)
    assert lost.status == 1
    assert f"{new}: perhaps claimed" in lost.err
    assert "refused" not in lost.err
    assert json.dumps("claimed") not in lost.out
