"""`roost explain` and `roost why` draw why a request has candidates or none."""

from __future__ import annotations

import pytest
import yaml

from support.roost_command import roost
from support.stubs.placement_stub import Reply, closed_port_url
from support.stubs.question_stub import HOST, Serving, capacity, explanation

EXPLAIN = "/roost/explain"


def test_the_query_is_shown_beside_the_answer(serving: Serving) -> None:
    stub = serving({EXPLAIN: explanation(feasible=True)})
    outcome = roost("explain", "VCPU=4", "--group", "cpu", "PCPU=64", "--require", "CUSTOM_GOLD")
    assert outcome.status == 0, outcome.err
    query = "resources=VCPU:4&resources_cpu=PCPU:64&required_cpu=CUSTOM_GOLD"
    assert outcome.err == f"GET /roost/explain?{query}\n"
    assert stub.questions[0].path == f"/roost/explain?{query}"
    assert stub.questions[0].headers["openstack-api-version"] == "placement 1.39"


def test_a_funnel_marks_the_stage_that_leaves_nothing(serving: Serving) -> None:
    serving({EXPLAIN: explanation()})
    words = ["DISK_GB=5", "--require", "A,!B", "--group", "cpu", "PCPU=64", "--isolate"]
    outcome = roost("explain", *words)
    assert outcome.status == 3
    bar, empty = "█" * 24, "░" * 24
    assert outcome.lines == [
        "There are no candidates. No provider has 64 PCPU free.",
        "",
        "Group unsuffixed",
        f"STAGE   PROVIDERS  TREES  {' ' * 24}  WHAT IT ASKS",
        f"class         600    600  {bar}  inventory of DISK_GB",
        f"unit          600    600  {bar}  units that allow DISK_GB=5",
        f"room          600    600  {bar}  DISK_GB=5 free",
        f"traits        600    600  {bar}  trait !B",
        "",
        "Group cpu",
        f"STAGE  PROVIDERS  TREES  {' ' * 24}  WHAT IT ASKS",
        f"class      1,200    600  {bar}  inventory of PCPU",
        f"room           0      0  {empty}  PCPU=64 free <- no tree is left",
        "",
        "All groups together",
        f"STAGE     TREES  {' ' * 24}  WHAT IT ASKS",
        f"groups        0  {empty}  each group by itself",
        f"together      0  {empty}  all groups at once; traits A; a provider for each group",
        "",
        "Nearest misses",
        "compute-1",
        "  compute-1_numa0 has 28 PCPU free, and 64 are wanted.",
        "",
        "What would have candidates",
        "28 PCPU would fit.",
        "  roost candidates --from-query 'resources_cpu=PCPU:28&limit=1'",
    ]


def test_a_search_that_was_not_complete_is_announced(serving: Serving) -> None:
    serving({EXPLAIN: explanation() | {"exact": False}})
    assert "ended before it was complete" in roost("explain", "VCPU=4").lines[1]
    serving({EXPLAIN: explanation() | {"exact": True}})
    assert roost("explain", "VCPU=4").lines[1] == ""


def test_a_terminal_without_blocks_gets_bars_of_ascii(serving: Serving) -> None:
    serving({EXPLAIN: explanation()})
    outcome = roost("explain", "VCPU=4", encoding="ascii")
    assert f"  {'#' * 24}  inventory of VCPU" in outcome.out
    assert "?" not in outcome.out


def test_json_is_the_answer_of_the_server(serving: Serving) -> None:
    serving({EXPLAIN: explanation() | {"added_later": [1]}})
    outcome = roost("explain", "VCPU=4", "--output", "json")
    assert outcome.status == 3
    assert outcome.json == explanation() | {"added_later": [1]}
    assert yaml.safe_load(roost("explain", "VCPU=4", "-o", "yaml").out) == outcome.json


def test_csv_has_a_row_for_each_stage(serving: Serving) -> None:
    serving({EXPLAIN: explanation()})
    lines = roost("explain", "VCPU=4", "--output", "csv").lines
    assert lines[0] == "group,stage,providers,trees,text"
    assert "cpu,room,0,0,has 64 PCPU free" in lines
    assert "request,together,,0,after together" in lines
    assert len(lines) == 1 + 6 + 3


def test_why_asks_about_one_host(serving: Serving) -> None:
    stub = serving({EXPLAIN: explanation()})
    outcome = roost("why", "compute-1", "VCPU=4", "--in-tree", "compute-1_numa0")
    assert outcome.status == 3
    assert stub.queries == [
        {
            "resources": "VCPU:4",
            "in_tree": "c0ffee00-0000-0000-0000-000000000002",
            "provider": "compute-1",
        }
    ]
    assert outcome.lines[0] == (
        "There are no candidates on compute-1. No provider has 64 PCPU free."
    )
    assert "What it lacks" in outcome.lines


@pytest.mark.parametrize("words", [["explain"], ["why", "compute-1"], ["capacity"]])
def test_a_question_takes_all_that_candidates_take(serving: Serving, words: list[str]) -> None:
    stub = serving({EXPLAIN: explanation(feasible=True), "/roost/capacity": capacity()})
    asked = ["VCPU=4", "--or", "VCPU=2", "--in-subtree", "compute-1", "--root-require", "in:A,B"]
    groups = ["--group", "a", "PCPU=1", "--group", "b", "PCPU=1", "--apart", "a,b"]
    outcome = roost(*words, *asked, *groups)
    assert outcome.status == 0, outcome.err
    sent = stub.queries[0]
    sent.pop("provider", None)
    assert sent == {
        "resources": "VCPU:4",
        "or_resources": "VCPU:2",
        "in_subtree": HOST["uuid"],
        "resources_a": "PCPU:1",
        "resources_b": "PCPU:1",
        "isolate": "_a,_b",
        "root_required": "in:A,B",
        "group_policy": "none",
    }


def test_each_alternative_has_a_funnel(serving: Serving) -> None:
    found = explanation()
    of_cpu = found["groups"][1]
    found["groups"][1:] = [of_cpu | {"alternative": 0}, of_cpu | {"alternative": 1}]
    found["reason"] |= {"alternatives": {"_cpu": 1}}
    serving({EXPLAIN: found})
    words = [
        "DISK_GB=5",
        "--in-subtree",
        "compute-1",
        "--group",
        "cpu",
        "PCPU=64",
        "--or",
        "VCPU=9",
    ]
    lines = roost("explain", *words).lines
    first, second = lines.index("Group cpu"), lines.index("Group cpu, alternative 1")
    assert lines[first + 3].endswith("  PCPU=64 free")
    assert lines[second + 3].endswith("  VCPU=9 free <- no tree is left")
    assert any(line.endswith(f"  root {HOST['uuid']}") for line in lines)


def test_a_request_that_fits_has_no_misses(serving: Serving) -> None:
    serving({EXPLAIN: explanation(feasible=True)})
    assert "Nearest misses" not in roost("explain", "VCPU=4").lines
    serving({EXPLAIN: explanation()})
    assert "Nearest misses" in roost("explain", "VCPU=4").lines


def test_a_request_may_come_from_a_log(serving: Serving) -> None:
    stub = serving({EXPLAIN: explanation(feasible=True)})
    line = '"GET /placement/allocation_candidates?limit=1000&resources=VCPU%3A1 HTTP/1.1" 200'
    assert roost("explain", "--from-query", line, "--misses", "2").status == 0
    assert stub.queries == [{"limit": "1000", "resources": "VCPU:1", "misses": "2"}]
    both = roost("explain", "--from-query", line, "VCPU=4")
    assert (both.status, both.out) == (2, "")
    assert "Leave out VCPU=4" in both.err


def test_the_query_alone_needs_no_server() -> None:
    with closed_port_url() as url:
        outcome = roost("explain", "VCPU=4", "--query", "--url", url)
    assert (outcome.status, outcome.out, outcome.err) == (0, "resources=VCPU:4\n", "")


def test_an_option_without_its_value_takes_no_option_behind_it() -> None:
    outcome = roost("explain", "--watch", "--group", "a", "VCPU=4", "--query")
    assert (outcome.status, outcome.out) == (0, "resources_a=VCPU:4\n")


@pytest.mark.parametrize(
    ("command", "following"),
    [
        (["explain"], "roost provider list --resources VCPU=4"),
        (
            ["why", "compute-1"],
            "roost candidates --from-query 'resources=VCPU:4,PCPU:1&in_tree=compute-1'",
        ),
        (["capacity"], "roost candidates --from-query resources=VCPU:4,PCPU:1"),
    ],
)
def test_a_server_without_the_route_gets_the_next_command(
    serving: Serving, command: list[str], following: str
) -> None:
    serving({})
    outcome = roost(*command, "VCPU=4", "PCPU=1")
    assert (outcome.status, outcome.out) == (1, "")
    *_, sentence, last = outcome.err.splitlines()
    assert "does not offer /roost/" in sentence
    assert last == f"Next: {following}"


@pytest.mark.parametrize(
    "command",
    [
        ["explain", "VCPU=1", "--in-tree", ""],
        ["candidates", "VCPU=1", "--in-subtree", ""],
        ["why", "", "VCPU=1"],
        ["whatif", "--drain", " ", "capacity", "VCPU=1"],
        ["whatif", "--add-host", "", "capacity", "VCPU=1"],
    ],
    ids=" ".join,
)
def test_an_empty_name_of_a_provider_is_not_sent(serving: Serving, command: list[str]) -> None:
    stub = serving({})
    outcome = roost(*command)
    assert (outcome.status, outcome.out, stub.received) == (2, "", [])
    assert "it is empty. Give a value, or leave the option out." in outcome.err


def test_an_unknown_host_is_no_missing_route(serving: Serving) -> None:
    error = {"code": "roost.no_such_provider", "detail": "No provider has the uuid or name 'x'."}
    serving({EXPLAIN: Reply(404, body={"errors": [error]})})
    outcome = roost("why", "x", "VCPU=4")
    assert outcome.status == 1
    assert "No provider has the name or uuid x." in outcome.err
    assert "does not offer" not in outcome.err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["VCPUS=4"], "The server knows no resource class VCPUS. Near it: VCPU"),
        (["VCPU=4", "--require", "AVX2"], "no trait AVX2. Near it: HW_CPU_X86_AVX2"),
        (["VCPU=4", "--root-require", "!GOLD"], "no trait GOLD. Near it: CUSTOM_GOLD"),
    ],
)
def test_a_refusal_suggests_near_names(serving: Serving, words: list[str], sentence: str) -> None:
    serving({EXPLAIN: Reply(400, body={"errors": [{"detail": "Invalid something"}]})})
    outcome = roost("explain", *words)
    assert outcome.status == 1
    assert sentence in outcome.err
    assert outcome.err.splitlines()[-1].startswith("Next: roost ")


@pytest.mark.parametrize(
    ("words", "noun"),
    [(["ZZZZZ=4"], "resource class"), (["VCPU=4", "--require", "QQQQQ"], "trait")],
)
def test_a_name_that_is_near_no_other_is_explained(
    serving: Serving, words: list[str], noun: str
) -> None:
    serving({EXPLAIN: Reply(400, body={"errors": [{"detail": "Invalid something"}]})})
    outcome = roost("explain", *words)
    assert outcome.err.splitlines()[-1] == f"Next: roost help {noun}"
    assert roost("help", *noun.split()).status == 0


def test_any_other_refusal_is_shown(serving: Serving) -> None:
    serving({EXPLAIN: Reply(400, body={"errors": [{"detail": "Too many groups."}]})})
    outcome = roost("explain", "VCPU=4")
    assert outcome.status == 1
    assert "Too many groups." in outcome.err


def test_an_answer_of_another_program_is_an_error_without_traceback(serving: Serving) -> None:
    serving({EXPLAIN: {"feasible": "perhaps"}})
    outcome = roost("explain", "VCPU=4")
    assert outcome.status == 1
    assert "not what a placement server sends" in outcome.err


def test_a_name_in_a_query_is_quoted_for_the_shell(serving: Serving) -> None:
    answer = explanation()
    answer["hints"] = [{"text": "x", "query": "required=!A&resources=VCPU:1"}]
    serving({EXPLAIN: answer})
    assert (
        "  roost candidates --from-query 'required=!A&resources=VCPU:1'"
        in roost("explain", "VCPU=4").lines
    )
