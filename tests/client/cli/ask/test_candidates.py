"""`roost candidates` lists where a request fits, on any placement server."""

from __future__ import annotations

from shlex import quote
from typing import Any

import pytest

from support.client.live_providers import LiveProviders
from support.roost_command import roost
from support.stubs.placement_stub import Reply, closed_port_url
from support.stubs.question_stub import HOST, Serving

CANDIDATES = "/allocation_candidates"
NOTHING: dict[str, Any] = {"allocation_requests": [], "provider_summaries": {}}


@pytest.fixture
def host(live_providers: LiveProviders) -> LiveProviders:
    """A host with a device below it, and a consumer that uses some of it."""
    live_providers.add("host", totals={"VCPU": 16}, traits=["HW_CPU_X86_AVX2"])
    live_providers.add("gpu", "host", totals={"VGPU": 4})
    live_providers.claim("instance", host={"VCPU": 6})
    return live_providers


def test_a_row_has_the_provider_its_groups_and_what_is_free(host: LiveProviders) -> None:
    words = ["VCPU=4", "--require", "hw_cpu_x86_avx2", "--in-tree", host.name("host")]
    outcome = roost("candidates", *words, "--group", "gpu", "VGPU=1", "-o", "csv")
    assert outcome.status == 0, outcome.err
    header, *rows = outcome.lines
    assert header == "candidate,provider,groups,resource_class,amount,free,root,uuid"
    assert sorted(rows) == [
        f"1,{host.name('gpu')},gpu,VGPU,1,4,{host.name('host')},{host.uuid('gpu')}",
        f"1,{host.name('host')},unsuffixed,VCPU,4,10,{host.name('host')},{host.uuid('host')}",
    ]
    assert f"in_tree={host.uuid('host')}" in outcome.err


def test_an_empty_list_ends_with_the_command_that_says_why(host: LiveProviders) -> None:
    outcome = roost("candidates", "VCPU=40", "--in-tree", host.name("host"))
    assert outcome.status == 3
    assert outcome.lines == ["There are no candidates."]
    assert outcome.err.splitlines()[-1] == (
        f"Next: roost explain --from-query 'resources=VCPU:40&in_tree={host.uuid('host')}'"
    )


def test_a_misspelt_class_gets_a_suggestion(live_providers: LiveProviders) -> None:
    del live_providers
    outcome = roost("candidates", "VCPUS=4")
    assert (outcome.status, outcome.out) == (1, "")
    assert "The server knows no resource class VCPUS. Near it: VCPU" in outcome.err
    assert outcome.err.splitlines()[-1] == "Next: roost class list"


@pytest.mark.parametrize("option", ["--in-tree", "--in-subtree"])
def test_a_misspelt_host_gets_a_suggestion(host: LiveProviders, option: str) -> None:
    name = host.name("host")
    outcome = roost("candidates", "VCPU=4", option, name[:-1])
    assert outcome.status == 1
    assert name in outcome.err


@pytest.mark.parametrize("server", ["reference"], indirect=True)
@pytest.mark.parametrize(
    "words",
    [
        *(["explain", "VCPU=1"], ["why", "x", "VCPU=1"], ["capacity", "VCPU=1"], ["resilience"]),
        *(["whatif", "--drain", "x", "capacity", "VCPU=1"], ["fragmentation", "VCPU=1"]),
    ],
    ids=lambda words: words[0],
)
def test_a_question_beyond_the_api_gets_a_sentence_and_the_next_command(
    live_providers: LiveProviders, words: list[str]
) -> None:
    del live_providers
    outcome = roost(*words)
    assert (outcome.status, outcome.out) == (1, "")
    sentence, following = outcome.err.splitlines()[-2:]
    assert "does not offer /roost/" in sentence
    assert following.startswith("Next: roost ")


@pytest.mark.parametrize(
    ("words", "limit"),
    [
        (["VCPU=1"], "20"),
        (["VCPU=1", "--limit", "3"], "3"),
        (["VCPU=1", "--limit", "0"], None),
        (["--from-query", "resources=VCPU:1&limit=1000"], "1000"),
        (["--from-query", "resources=VCPU:1&limit=1000", "--limit", "5"], "5"),
    ],
)
def test_the_list_has_a_limit(serving: Serving, words: list[str], limit: str | None) -> None:
    stub = serving({CANDIDATES: NOTHING})
    assert roost("candidates", *words).status == 3
    assert stub.queries[0].get("limit") == limit


def test_a_misspelt_class_of_an_alternative_gets_a_suggestion(serving: Serving) -> None:
    refusal = Reply(400, body={"errors": [{"detail": "Invalid something"}]})
    serving({"/roost/candidates": refusal})
    outcome = roost("candidates", "VCPU=1", "--or", "VCPUS=1")
    assert (outcome.status, outcome.out) == (1, "")
    assert "The server knows no resource class VCPUS. Near it: VCPU" in outcome.err


def test_a_note_tells_that_the_list_ends_at_the_limit(serving: Serving) -> None:
    uuid = "c0ffee00-0000-0000-0000-000000000001"
    request = {"allocations": {uuid: {"resources": {"VCPU": 1}}}}
    serving({CANDIDATES: {"allocation_requests": [request], "provider_summaries": {}}})
    assert "--limit 0 shows all" in roost("candidates", "VCPU=1", "--limit", "1").err
    assert "shows all" not in roost("candidates", "VCPU=1", "--limit", "2").err


def test_an_older_server_is_asked_at_its_newest_version(serving: Serving) -> None:
    stub = serving({CANDIDATES: NOTHING}, max_version="1.29")
    assert roost("candidates", "VCPU=1", "-o", "json").json == NOTHING
    assert stub.questions[0].headers["openstack-api-version"] == "placement 1.29"


def test_a_server_that_is_away_is_an_error_of_two_lines() -> None:
    with closed_port_url() as url:
        outcome = roost("candidates", "VCPU=4", "--url", url)
    assert (outcome.status, outcome.out) == (1, "")
    assert url in outcome.err
    assert outcome.err.splitlines()[-1] == f"Next: roost doctor --url {url}"


@pytest.mark.parametrize(
    ("words", "query"),
    [
        (["--order", "pack"], {"order": "pack"}),
        (["--seed", "7"], {"order": "random", "seed": "7"}),
        (["--or", "VCPU=2"], {"or_resources": "VCPU:2"}),
        (["--in-subtree", "compute-1"], {"in_subtree": HOST["uuid"]}),
        (["--root-require", "in:A,B"], {"root_required": "in:A,B"}),
    ],
)
def test_what_only_roost_answers_goes_to_its_own_route(
    serving: Serving, words: list[str], query: dict[str, str]
) -> None:
    stub = serving({"/roost/candidates": NOTHING})
    outcome = roost("candidates", "VCPU=4", *words)
    assert outcome.status == 3, outcome.err
    assert stub.queries == [{"resources": "VCPU:4", "limit": "20", **query}]
    asked = {"resources": "VCPU:4", **query}
    text = "&".join(f"{key}={asked[key]}" for key in asked if key not in ("order", "seed"))
    # The explanation takes every query that has candidates.
    assert outcome.err.splitlines()[-1] == f"Next: roost explain --from-query {quote(text)}"
    serving({})
    refused = roost("candidates", "VCPU=4", *words)
    assert refused.status == 1
    assert refused.err.splitlines()[-1] == "Next: roost candidates --from-query resources=VCPU:4"
