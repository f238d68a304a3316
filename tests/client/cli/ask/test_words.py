"""Words of a request become the query that they mean."""

from __future__ import annotations

import shlex
from typing import Any
from urllib.parse import parse_qsl

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.api.candidates.query import parse_candidate_query
from roost.api.http.microversions import MAX_VERSION
from roost.cli.ask.words import UnreadableRequest, pairs_of, read_request
from roost.client.ledger.query import plain_pairs, query_string
from roost.model.candidate_query.query import CandidateQuery, RequestGroup
from roost.model.providers import AggregateFilter, TraitFilter
from support.properties import many

A, B = (f"c0ffee00-0000-0000-0000-00000000000{number}" for number in "12")

CASES = {
    "VCPU=4": "resources=VCPU:4",
    "VCPU:4 MEMORY_MB=8192": "resources=VCPU:4,MEMORY_MB:8192",
    "VCPU=4,MEMORY_MB=8192": "resources=VCPU:4,MEMORY_MB:8192",
    "vcpu=4 --require custom_a": "resources=VCPU:4&required=CUSTOM_A",
    "VCPU=1 --require A --require B --forbid C,D": "resources=VCPU:1&required=A,B,!C,!D",
    "VCPU=1 --require '!A'": "resources=VCPU:1&required=!A",
    "VCPU=1 --forbid '!A'": "resources=VCPU:1&required=!A",
    "VCPU=1 --require in:A,B --require C": "resources=VCPU:1&required=C&required=in:A,B",
    f"VCPU=1 --member-of {A} --member-of !{B}": (f"resources=VCPU:1&member_of={A}&member_of=!{B}"),
    f"VCPU=1 --member-of {A},{B}": f"resources=VCPU:1&member_of=in:{A},{B}",
    f"VCPU=1 --member-of '!in:{A},{B}'": f"resources=VCPU:1&member_of=!in:{A},{B}",
    "VCPU=1 --in-tree compute-1": "resources=VCPU:1&in_tree=compute-1",
    "VCPU=1 --root-require A,'!B' --root-require C": "resources=VCPU:1&root_required=A,!B,C",
    "VCPU=1 --limit 3": "resources=VCPU:1&limit=3",
    "VCPU=1 --root-require in:A,B --root-require C": (
        "resources=VCPU:1&root_required=C&root_required=in:A,B"
    ),
    "VCPU=4 --or VCPU=2,VGPU=1 --or VCPU=1": (
        "resources=VCPU:4&or_resources=VCPU:2,VGPU:1&or_resources=VCPU:1"
    ),
    "--group a VF=1 --in-subtree h --group b VF=1 --apart a,b": (
        "resources_a=VF:1&in_subtree_a=h&resources_b=VF:1&group_policy=none&isolate=_a,_b"
    ),
    "--group net VF=1": "resources_net=VF:1",
    "--group 1 VF=1 --group _x VF=2": "resources1=VF:1&resources_x=VF:2&group_policy=none",
    "--isolate --group a VF=1 --group b VF=1": (
        "resources_a=VF:1&resources_b=VF:1&group_policy=isolate"
    ),
    "DISK_GB=5 --group a VF=1 --require X --in-tree h --group b VF=2 --forbid Y": (
        "resources=DISK_GB:5&resources_a=VF:1&required_a=X&in_tree_a=h"
        "&resources_b=VF:2&required_b=!Y&group_policy=none"
    ),
    "--group a VCPU=1 --group b VF=1 --group c --require X --same-subtree a,c": (
        "resources_a=VCPU:1&resources_b=VF:1&required_c=X&group_policy=none&same_subtree=_a,_c"
    ),
    "VCPU=4 --require HW_CPU_X86_AVX2 --group net SRIOV_NET_VF=1 --same-subtree cpu,net": (
        "resources_cpu=VCPU:4&required_cpu=HW_CPU_X86_AVX2&resources_net=SRIOV_NET_VF:1"
        "&group_policy=none&same_subtree=_cpu,_net"
    ),
}


@pytest.mark.parametrize("words", CASES)
def test_words_become_a_query(words: str) -> None:
    assert query_string(read_request(words).pairs) == CASES[words]


def test_a_note_tells_that_the_first_group_got_a_name() -> None:
    request = read_request("VCPU=4 --group net VF=1 --same-subtree cpu,net")
    assert request.notes == ("The words before the first --group are the group cpu.",)
    assert read_request("VCPU=4 --group net VF=1").notes == ()


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        ("VCPU", ["'VCPU'", "VCPU=4"]),
        ("VCPU=", ["'VCPU='"]),
        ("VCPU=four", ["'VCPU=four'"]),
        ("VCPU=-1", ["'VCPU=-1'"]),
        ("VCPU=0", ["'VCPU=0'", "1 to 2147483647"]),
        ("VCPU=99999999999999999999", ["1 to 2147483647"]),
        ("compute-1=4", ["'compute-1=4'"]),
        ("VCPU=1 VCPU=2", ["VCPU twice", "--group NAME VCPU=2"]),
        ("VCPU=1 --require ''", ["no trait"]),
        ("VCPU=1 --require A,,B", ["no trait"]),
        ("VCPU=1 --require in:", ["--require in:A,B"]),
        ("VCPU=1 --member-of rack-1", ["'rack-1' is no uuid", "roost provider show"]),
        ("VCPU=1 --in-tree a --in-tree b", ["--in-tree twice"]),
        ("VCPU=1 --in-tree ''", ["--in-tree of the group", "is empty", "leave the option out"]),
        ("VCPU=1 --group a", ["The group a asks for nothing"]),
        ("VCPU=1 --group a! VF=1", ["'a!' is no name of a group"]),
        ("VCPU=1 --group a VF=1 --group a VF=1", ["two groups a", "--group a2"]),
        ("--require A", ["no resources", "VCPU=4"]),
        ("", ["no resources"]),
        ("VCPU=1 --isolate --group-policy none", ["contradict"]),
        ("VCPU=1 --group net VF=1 --same-subtree cpu,nett", ["group nett", "mean net"]),
        ("VCPU=1 --group cpu PCPU=1 --group net VF=1 --same-subtree cup,net", ["mean cpu"]),
        ("--group net VF=1 --same-subtree cpu,net", ["group cpu", "--group cpu VCPU=1"]),
        ("--group a VF=1 --group b VF=1 --apart a,bb", ["group bb", "mean b"]),
        ("VCPU=1 --or VCPU", ["'VCPU'"]),
        ("VCPU=1 --in-subtree a --in-subtree b", ["--in-subtree twice"]),
        ("VCPU=1 --watch", ["--watch", "none of a request"]),
        ("VCPU=1 'MEMORY", ["cannot be split"]),
    ],
)
def test_an_error_names_the_word_and_the_fix(words: str, parts: list[str]) -> None:
    with pytest.raises(UnreadableRequest) as refused:
        read_request(words)
    for part in parts:
        assert part in str(refused.value)


NAMES = st.sampled_from(["VCPU", "MEMORY_MB", "VF", "A", "B2", "HW_CPU_X86_AVX2", "CUSTOM_X_1"])
UUIDS = st.sampled_from([A, B])
AMOUNTS = st.integers(1, 2**31 - 1)


@st.composite
def groups(draw: st.DrawFn, suffix: str) -> RequestGroup:
    names = draw(st.lists(NAMES, unique=True, max_size=6))
    cut = draw(st.integers(0, len(names)))
    choices = draw(st.lists(st.lists(NAMES, min_size=1, max_size=3).map(tuple), max_size=2))
    return RequestGroup(
        suffix,
        draw(st.dictionaries(NAMES, AMOUNTS, min_size=1, max_size=3)),
        # Traits that are required and forbidden at once are no valid query.
        TraitFilter(
            tuple(names[:cut]), tuple(choices) if cut == len(names) else (), tuple(names[cut:])
        ),
        AggregateFilter(
            tuple(
                draw(
                    st.lists(
                        st.lists(UUIDS, min_size=1, max_size=2, unique=True).map(tuple), max_size=2
                    )
                )
            ),
            tuple(draw(st.lists(UUIDS, max_size=2))),
        ),
        draw(st.none() | UUIDS),
    )


@st.composite
def queries(draw: st.DrawFn) -> CandidateQuery:
    suffixes = draw(st.lists(st.sampled_from(["_a", "_b", "_c", "1", "27"]), unique=True))
    has_first = draw(st.booleans()) or not suffixes
    found = tuple(draw(groups(suffix)) for suffix in [*([""] if has_first else []), *suffixes])
    subtrees = st.lists(st.sets(st.sampled_from(suffixes), min_size=1).map(frozenset), max_size=2)
    names = draw(st.lists(NAMES, unique=True, max_size=3))
    return CandidateQuery(
        found,
        isolate=draw(st.booleans()),
        same_subtrees=tuple(draw(subtrees)) if suffixes else (),
        root_required=TraitFilter(tuple(names[:1]), (), tuple(names[1:])),
        limit=draw(st.none() | st.integers(1, 1000)),
    )


def words_of(query: CandidateQuery, draw: Any) -> list[str]:
    """The words that a person types for a query, with the free choices that a person has."""
    general = [["--isolate"]] if query.isolate else []
    general += [["--same-subtree", ",".join(sorted(names))] for names in query.same_subtrees]
    general += [["--root-require", name] for name in query.root_required.required]
    general += [["--root-require", f"!{name}"] for name in query.root_required.forbidden]
    general += [["--limit", str(query.limit)]] if query.limit else []
    words: list[str] = []
    for group in query.groups:
        words += ["--group", group.suffix] if group.suffix else []
        parts = [
            [f"{name}{draw(st.sampled_from('=:'))}{amount}"]
            for name, amount in group.resources.items()
        ]
        parts += [["--require", name] for name in group.traits.required]
        parts += [["--require", f"in:{','.join(names)}"] for names in group.traits.any_of]
        parts += [["--forbid", name] for name in group.traits.forbidden]
        parts += [["--member-of", ",".join(uuids)] for uuids in group.aggregates.any_of]
        parts += [["--member-of", f"!{uuid}"] for uuid in group.aggregates.forbidden]
        parts += [["--in-tree", group.in_tree]] if group.in_tree else []
        # Options between groups may stand anywhere.
        while general and draw(st.booleans()):
            parts.insert(draw(st.integers(0, len(parts))), general.pop())
        words += [word for part in parts for word in part]
    return words + [word for part in general for word in part]


def comparable(query: CandidateQuery) -> Any:
    return (
        [
            (
                group.suffix,
                dict(group.resources),
                [sorted(names) for names in (group.traits.required, group.traits.forbidden)],
                list(group.traits.any_of),
                (group.aggregates, group.in_tree),
            )
            for group in query.groups
        ],
        query.isolate,
        sorted(map(sorted, query.same_subtrees)),
        [sorted(query.root_required.required), sorted(query.root_required.forbidden)],
        query.limit,
    )


@settings(max_examples=many(30))
@given(queries(), st.data())
def test_a_server_reads_what_the_words_mean(query: CandidateQuery, data: st.DataObject) -> None:
    words = words_of(query, data.draw)
    text = query_string(read_request(shlex.join(words)).pairs)
    read = parse_candidate_query(parse_qsl(text), MAX_VERSION, 100)
    assert comparable(read) == comparable(query)


PAIRS = st.lists(st.tuples(st.text(min_size=1), st.text()), min_size=1).map(tuple)


@settings(max_examples=many(20))
@given(PAIRS)
def test_a_query_string_has_all_pairs(pairs: tuple[tuple[str, str], ...]) -> None:
    assert pairs_of(query_string(pairs)) == pairs
    assert pairs_of(f"/placement/allocation_candidates?{query_string(pairs)}") == pairs


@pytest.mark.parametrize(
    "text",
    [
        "resources=VCPU:4&limit=5",
        "?resources=VCPU%3A4&limit=5",
        "/allocation_candidates?resources=VCPU%3A4&limit=5",
        "https://placement.example/allocation_candidates?resources=VCPU%3A4&limit=5 ",
        '10.0.0.1 "GET /placement/allocation_candidates?resources=VCPU%3A4&limit=5" status: 200',
        "'resources=VCPU%3A4&limit=5'",
        "resources%3DVCPU%253A4%26limit%3D5",
        "%2Fallocation_candidates%3Fresources%3DVCPU%253A4%26limit%3D5",
    ],
)
def test_a_query_is_found_in_a_line_of_a_log(text: str) -> None:
    assert pairs_of(text) == (("resources", "VCPU:4"), ("limit", "5"))


GROUPS = "resources_a=VCPU:9&resources_b=VCPU:1"


@pytest.mark.parametrize(
    ("query", "plain"),
    [
        (GROUPS, GROUPS),
        (f"{GROUPS}&isolate=_a,_b", f"{GROUPS}&group_policy=isolate"),
        (f"{GROUPS}&group_policy=none&isolate=_a,_b", f"{GROUPS}&group_policy=isolate"),
        (
            f"{GROUPS}&resources_c=VF:1&isolate=_a,_b",
            f"{GROUPS}&resources_c=VF:1&group_policy=none",
        ),
        (f"{GROUPS}&group_policy=isolate&isolate=_a", f"{GROUPS}&group_policy=isolate"),
    ],
)
def test_any_server_answers_the_plain_form_of_a_query(query: str, plain: str) -> None:
    assert query_string(plain_pairs(pairs_of(query))) == plain
    if "group_policy" in plain:
        parse_candidate_query(parse_qsl(plain), MAX_VERSION, 100)


@pytest.mark.parametrize("text", ["", "VCPU", "?", "/allocation_candidates?", "a b c"])
def test_an_error_shows_what_a_query_looks_like(text: str) -> None:
    with pytest.raises(UnreadableRequest, match="resources=VCPU:4"):
        pairs_of(text)
