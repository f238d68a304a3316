"""`roost agent`: its output, its writes, its exit status and its signals."""

from __future__ import annotations

import errno
import json
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType, ModuleType

import pytest

from roost.client.provider_tree import ProviderTree
from support.client.live_providers import LiveProviders
from support.roost_command import Outcome, roost
from support.stubs.placement_stub import closed_port_url
from support.transports.tampering import one_server
from support.waiting import SECONDS_MAX

CONFIGURATION = 78
Work = Callable[[int], object]
"""The work of a driver for the report with this number."""
Run = Callable[..., tuple[Outcome, int]]


@pytest.fixture(autouse=True)
def deadline() -> Iterator[None]:
    """Fail a test in which the agent does not end."""

    def too_long(number: int, frame: FrameType | None) -> None:
        pytest.fail("the agent did not end")

    before = signal.signal(signal.SIGALRM, too_long)
    signal.alarm(int(SECONDS_MAX))
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def agent(live_providers: LiveProviders, *arguments: str) -> Outcome:
    """Run the agent for the host of a test with the file tree.yaml."""
    return roost(
        *("agent", "--driver", "file", "--option", "path=tree.yaml"),
        *("--name", live_providers.name("host"), *arguments),
    )


def write_tree(live_providers: LiveProviders, vcpus: int) -> None:
    Path("tree.yaml").write_text(
        f"providers: [{{name: {live_providers.name('host')}, inventories: {{VCPU: {vcpus}}}}}]"
    )


# -- one report


def test_once_makes_one_report(live_providers: LiveProviders) -> None:
    host = live_providers.name("host")
    write_tree(live_providers, 8)
    first = agent(live_providers, "--once", "--uuid", live_providers.uuid("host").upper())
    assert (first.status, first.err) == (0, "")
    assert first.lines == [
        f"{host}: created",
        f"{host}: inventory VCPU added (total 8)",
        f"{host}: traits added: CUSTOM_ROOST_OWNER_AGENT",
    ]
    assert live_providers.totals("host") == {"VCPU": 8}
    assert agent(live_providers, "--once") == Outcome(0, "", "")
    write_tree(live_providers, 9)
    assert agent(live_providers, "--once").lines == [f"{host}: inventory VCPU total 8 -> 9"]


@one_server
def test_a_full_disk_is_no_wrong_configuration(
    live_providers: LiveProviders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Status 78 would keep systemd from starting the agent again."""

    def refuse(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    write_tree(live_providers, 8)
    with monkeypatch.context() as full:
        full.setattr(os, "fsync", refuse)
        waiting = agent(live_providers, "--once")
    host = live_providers.name("host")
    assert waiting.status == 0
    assert waiting.lines == [
        f"kept: {host}: not created yet, the ownership records cannot be saved"
    ]
    assert "No space left on device; make room there" in waiting.err
    assert agent(live_providers, "--once").lines[0] == f"{host}: created"


@one_server
def test_a_dry_run_prints_the_changes_and_writes_nothing(
    live_providers: LiveProviders, state: Path
) -> None:
    host = live_providers.name("host")
    write_tree(live_providers, 8)
    outcome = agent(live_providers, "--dry-run", "--uuid", live_providers.uuid("host"))
    assert outcome.status == 0
    assert outcome.lines == [
        f"{host}: would be created",
        f"{host}: inventory VCPU would be added (total 8)",
        f"{host}: traits would be added: CUSTOM_ROOST_OWNER_AGENT",
    ]
    assert not live_providers.exists("host")
    assert not state.exists()

    agent(live_providers, "--once", "--uuid", live_providers.uuid("host"))
    assert agent(live_providers, "--dry-run").lines == ["nothing would change"]


@one_server
def test_json_has_one_object_for_each_event(live_providers: LiveProviders) -> None:
    write_tree(live_providers, 8)
    planned = agent(live_providers, "--dry-run", "--json").json
    written = agent(live_providers, "--once", "--json").json
    assert (planned["event"], written["event"]) == ("would change", "changed")
    (creation,) = written["difference"]["creations"]
    assert creation["name"] == live_providers.name("host")
    assert written["kept"] == []
    assert written["time"].endswith("+00:00")


@one_server
def test_a_provider_in_use_is_kept_and_reported(live_providers: LiveProviders) -> None:
    host, gpu = live_providers.name("host"), live_providers.name("gpu")
    child = f"{{name: {gpu}, uuid: {live_providers.uuid('gpu')}, inventories: {{VGPU: 4}}}}"
    Path("tree.yaml").write_text(f"providers: [{{name: {host}, children: [{child}]}}]")
    agent(live_providers, "--once", "--uuid", live_providers.uuid("host"))
    live_providers.claim("instance", gpu={"VGPU": 1})
    Path("tree.yaml").write_text(f"providers: [{{name: {host}}}]")
    outcome = agent(live_providers, "--once")
    assert outcome.status == 0
    assert f"kept: {gpu}: not deleted, it is in use" in outcome.lines


@one_server
def test_the_owner_has_its_own_records_and_trait(live_providers: LiveProviders) -> None:
    write_tree(live_providers, 8)
    agent(
        live_providers,
        "--once",
        "--uuid",
        live_providers.uuid("host"),
        "--owner",
        "rack",
        "--records",
        "mine",
    )
    assert live_providers.traits("host") == {"CUSTOM_ROOST_OWNER_RACK"}
    assert [path.stem for path in Path("mine", "rack").iterdir()] == [live_providers.uuid("host")]


@one_server
def test_adopt_removes_undeclared_inventories_and_traits(live_providers: LiveProviders) -> None:
    live_providers.add("host", totals={"VCPU": 8, "PCPU": 4}, traits=["HW_CPU_X86_AVX2"])
    write_tree(live_providers, 8)
    assert agent(live_providers, "--once") == Outcome(0, "", "")
    assert agent(live_providers, "--once", "--adopt").lines == [
        f"{live_providers.name('host')}: inventory PCPU removed",
        f"{live_providers.name('host')}: traits removed: HW_CPU_X86_AVX2",
    ]


# -- failed reports


@pytest.mark.parametrize("how", ["--once", "--dry-run"])
def test_an_error_names_an_unreachable_server(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("tree.yaml").write_text("providers: [{name: host}]")
    with closed_port_url() as url:
        monkeypatch.setenv("ROOST_URL", url)
        outcome = roost(
            *("agent", "--driver", "file", "--option", "path=tree.yaml", "--name", "host", how)
        )
    assert (outcome.status, outcome.out) == (1, "")
    assert url in outcome.err
    assert "Is the server running" in outcome.err


def test_an_error_lists_the_problems_of_a_file() -> None:
    Path("tree.yaml").write_text("providers:\n- name: host\n  trait: []\n")
    outcome = roost(
        *("agent", "--driver", "file", "--option", "path=tree.yaml", "--name", "host", "--once")
    )
    assert outcome.status == 1
    assert "tree.yaml:3:3: unknown key `trait`" in outcome.err


# -- wrong configuration, which no restart corrects


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--driver", "solaris"], "There is no driver 'solaris'"),
        (["--driver", "file"], "path (required)"),
        (["--driver", "file", "--option", "path"], "path: write it as KEY=VALUE"),
        (["--driver", "file", "--option", "=x"], "KEY=VALUE"),
        (["--driver", "file", "--option", "path=x", "--option", "size=8"], "size"),
        (["--driver", "linux", "--uuid", "host-1"], "'--uuid': host-1: that is no UUID"),
        (["--driver", "linux", "--name", ""], "'--name': '': a name has 1 to 200 characters"),
        (["--driver", "linux", "--name", "x" * 201], "a name has 1 to 200 characters"),
        (["--driver", "linux", "--owner", "the rack"], "'the rack' cannot be an owner"),
        (["--driver", "linux", "--url", "ftp://there"], "http://"),
        (["--driver", "linux", "--records", "file/records"], "Cannot save ownership records"),
        (["--driver", "linux", "--interval", "soon"], "--interval"),
        (["--driver", "linux", "--intervall", "5"], "No such option"),
        ([], "--driver"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_wrong_configuration_has_an_exit_status_of_its_own(
    arguments: list[str], words: str
) -> None:
    Path("file").write_text("a file instead of a directory")
    outcome = roost("agent", *arguments)
    assert outcome.status == CONFIGURATION
    assert words in outcome.err
    assert outcome.out == ""


# -- signals


@pytest.fixture
def run_scripted(live_providers: LiveProviders, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the agent with work for its driver; its outcome and the number of reports."""

    def run(work: Work, *arguments: str) -> tuple[Outcome, int]:
        reports = 0

        class Driver:
            def update_provider_tree(self, provider_tree: ProviderTree, nodename: str) -> None:
                nonlocal reports
                reports += 1
                work(reports)

        module = ModuleType("scripted")
        vars(module)["Driver"] = Driver
        monkeypatch.setitem(sys.modules, "scripted", module)
        outcome = roost(
            *(
                "agent",
                "--driver",
                "scripted:Driver",
                "--name",
                live_providers.name("host"),
                *arguments,
            )
        )
        return outcome, reports

    return run


@one_server
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_agent_after_the_present_report(
    number: signal.Signals, run_scripted: Run, live_providers: LiveProviders
) -> None:
    before = signal.getsignal(number)
    outcome, reports = run_scripted(
        lambda _: os.kill(os.getpid(), number), "--uuid", live_providers.uuid("host")
    )
    assert (outcome.status, reports) == (0, 1)
    (started,) = outcome.err.splitlines()
    assert started.startswith(
        f"roost: reporting {live_providers.name('host')} to http://127.0.0.1:"
    )
    assert outcome.lines == [f"{live_providers.name('host')}: created"]
    assert live_providers.exists("host")
    # The command restores the signal handlers of its caller.
    assert signal.getsignal(number) is before


@one_server
def test_the_agent_reports_at_once_after_sighup(run_scripted: Run) -> None:
    signals = {1: signal.SIGHUP, 2: signal.SIGHUP, 3: signal.SIGTERM}
    open_before = set(os.listdir("/proc/self/fd"))
    outcome, reports = run_scripted(
        lambda report: os.kill(os.getpid(), signals[report]), "--interval", "3600"
    )
    assert (outcome.status, reports) == (0, 3)
    assert set(os.listdir("/proc/self/fd")) <= open_before


@one_server
def test_failures_and_recoveries_are_events(run_scripted: Run) -> None:
    def work(report: int) -> None:
        if report == 1:
            os.kill(os.getpid(), signal.SIGHUP)
            raise KeyError("numa0")
        os.kill(os.getpid(), signal.SIGTERM)

    outcome, reports = run_scripted(work, "--json")
    events = [json.loads(line) for line in outcome.lines]
    names = [event["event"] for event in events]
    assert names == ["started", "failed", "log", "recovered", "changed"]
    assert events[1]["message"].startswith("report failed: The driver ")
    assert "Driver failed with KeyError: 'numa0' (" in events[1]["message"]
    assert (outcome.status, reports) == (0, 2)


# -- output


@one_server
@pytest.mark.parametrize("form", ["text", "json"])
def test_a_warning_that_each_report_repeats_is_printed_once(
    form: str, run_scripted: Run, live_providers: LiveProviders
) -> None:
    def work(report: int) -> None:
        logging.getLogger("mydriver").warning("Disk sdx is left out")
        if report == 2:
            logging.getLogger("mydriver").warning("Disk sdy is left out")
        os.kill(os.getpid(), signal.SIGTERM if report == 3 else signal.SIGHUP)

    arguments = ["--json"] if form == "json" else []
    outcome, reports = run_scripted(work, "--interval", "3600", *arguments)
    assert (outcome.status, reports) == (0, 3)
    warnings = ["Disk sdx is left out", "Disk sdy is left out"]
    if form == "text":
        assert outcome.err.splitlines()[1:] == warnings
        assert outcome.lines == [f"{live_providers.name('host')}: created"]
    else:
        assert outcome.err == ""
        events = [json.loads(line) for line in outcome.lines]
        logged = [event for event in events if event["event"] == "log"]
        assert [event["message"] for event in logged] == warnings
        assert {(event["level"], event["logger"]) for event in logged} == {("warning", "mydriver")}


@one_server
def test_the_traceback_of_a_driver_is_an_event(run_scripted: Run) -> None:
    def work(_: int) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        raise KeyError("numa0")

    outcome, _ = run_scripted(work, "--json")
    _, failed, logged = map(json.loads, outcome.lines)
    assert (failed["event"], logged["event"], logged["level"]) == ("failed", "log", "error")
    assert logged["message"].startswith("The report failed with an unexpected error\nTraceback")
    assert outcome.err == ""


@one_server
@pytest.mark.parametrize("way", [["--once"], ["--dry-run"], ["--dry-run", "--offline"]])
def test_an_error_in_the_code_of_a_driver_is_one_line_with_its_place(
    way: list[str], run_scripted: Run
) -> None:
    def work(_: int) -> None:
        raise KeyError("numa0")

    outcome, _ = run_scripted(work, *way)
    assert (outcome.status, outcome.out) == (1, "")
    (line,) = outcome.err.splitlines()
    assert line.startswith("roost: The driver ")
    assert "failed with KeyError: 'numa0'" in line
    assert line.endswith("in work)")
    explained, _ = run_scripted(work, *way, "--debug")
    assert "Traceback (most recent call last)" in explained.err
    assert explained.err.splitlines()[-1] == line


@one_server
@pytest.mark.parametrize("error", [ValueError("no bus"), SystemExit(0), SystemExit()])
def test_whatever_a_driver_raises_is_a_failure_in_one_line(
    error: BaseException, run_scripted: Run
) -> None:
    def work(_: int) -> None:
        raise error

    outcome, _ = run_scripted(work, "--once")
    assert outcome.status == 1
    (line,) = outcome.err.splitlines()
    assert line.startswith("roost: The driver ")
    assert f"failed with {type(error).__name__}" in line


@one_server
def test_a_driver_that_removes_its_host_is_a_failure_in_one_line(
    live_providers: LiveProviders, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Removing:
        def update_provider_tree(self, provider_tree: ProviderTree, nodename: str) -> None:
            provider_tree.remove(nodename)

    module = ModuleType("removing")
    vars(module)["Removing"] = Removing
    monkeypatch.setitem(sys.modules, "removing", module)
    name = live_providers.name("host")
    outcome = roost("agent", "--driver", "removing:Removing", "--name", name, "--once")
    assert outcome.status == 1
    (line,) = outcome.err.splitlines()
    assert "Removing failed with ValueError: No such provider" in line


@one_server
def test_a_driver_that_exits_does_not_end_the_agent(run_scripted: Run) -> None:
    def work(report: int) -> None:
        os.kill(os.getpid(), signal.SIGHUP if report == 1 else signal.SIGTERM)
        if report == 1:
            sys.exit()

    _, reports = run_scripted(work, "--interval", "3600")
    assert reports == 2


@one_server
def test_a_name_that_the_terminal_cannot_encode_has_question_marks(
    live_providers: LiveProviders,
) -> None:
    rack = f"机架 {live_providers.name('rack')}"
    Path("tree.yaml").write_text(f"providers: [{{name: {rack}}}]")
    outcome = roost(
        *("agent", "--driver", "file", "--option", "path=tree.yaml", "--once"),
        *("--name", rack, "--uuid", live_providers.uuid("rack")),
        encoding="latin-1",
    )
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.lines[0] == f"?? {live_providers.name('rack')}: created"
    shown = roost("tree", "show", rack, encoding="latin-1")
    assert shown.lines[0] == f"?? {live_providers.name('rack')}  {live_providers.uuid('rack')}"


# -- details, metrics, and drivers that need no records


@one_server
def test_verbose_tells_what_is_read_and_what_each_report_takes(
    live_providers: LiveProviders,
) -> None:
    write_tree(live_providers, 8)
    outcome = agent(live_providers, "--once", "--uuid", live_providers.uuid("host"), "-v")
    assert outcome.status == 0
    host = live_providers.name("host")
    assert "info: There is no configuration file" in outcome.err
    assert f"info: name: {host}    # command line" in outcome.err
    assert f"info: The driver read {host} in " in outcome.err
    assert ": 3 changes, 0 kept, 1 provider, " in outcome.err
    assert "GET /" not in outcome.err


@one_server
def test_debug_tells_each_request_and_no_token(
    live_providers: LiveProviders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROOST_TOKEN", "admin")
    write_tree(live_providers, 8)
    level = logging.getLogger().level
    outcome = agent(live_providers, "--once", "--uuid", live_providers.uuid("host"), "--debug")
    assert outcome.status == 0
    assert "debug: POST /resource_providers: 200 in 0." in outcome.err
    assert "admin" not in outcome.err
    assert logging.getLogger().level == level


@one_server
def test_details_are_events_of_json(live_providers: LiveProviders) -> None:
    write_tree(live_providers, 8)
    outcome = agent(live_providers, "--once", "--json", "--debug")
    levels = {json.loads(line).get("level") for line in outcome.lines}
    assert levels == {"info", "debug", None}


@one_server
def test_metrics_are_written_after_each_report(live_providers: LiveProviders) -> None:
    write_tree(live_providers, 8)
    arguments = ["--once", "--uuid", live_providers.uuid("host"), "--metrics-file", "a.prom"]
    assert agent(live_providers, *arguments).status == 0
    text = Path("a.prom").read_text()
    assert "roost_agent_providers 1\n" in text
    assert "roost_agent_changes_total 3\n" in text
    assert 'driver="file",owner="agent"' in text
    Path("tree.yaml").write_text("providers: nonsense")
    assert agent(live_providers, *arguments).status == 1
    assert 'roost_agent_reports_total{result="failure"} 1\n' in Path("a.prom").read_text()


@one_server
@pytest.mark.parametrize("how", ["--once", "--dry-run"])
def test_a_driver_that_edits_the_tree_leaves_the_records_alone(
    how: str, run_scripted: Run, state: Path
) -> None:
    state.write_text("a file instead of a directory, so that no record can be kept")
    outcome, reports = run_scripted(lambda _: None, how)
    told = "1 change would be made\n" if how == "--dry-run" else ""
    assert (outcome.status, outcome.err, reports) == (0, told, 1)
    assert state.is_file()


@pytest.mark.parametrize("given", ["--owner", "--adopt", "--accept-loss"])
@pytest.mark.parametrize("how", ["line", "variable", "file"])
def test_options_of_owners_are_refused_for_a_driver_that_edits_the_tree(
    given: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Driver:
        def update_provider_tree(self, provider_tree: ProviderTree, nodename: str) -> None: ...

    module = ModuleType("scripted")
    vars(module)["Driver"] = Driver
    monkeypatch.setitem(sys.modules, "scripted", module)
    key, value = given.lstrip("-"), "rack" if given == "--owner" else "true"
    arguments = ["agent", "--driver", "scripted:Driver", "--dry-run", "--offline"]
    if how == "line":
        arguments += [given, value] if given == "--owner" else [given]
    elif how == "variable":
        monkeypatch.setenv(f"ROOST_AGENT_{key.upper().replace('-', '_')}", value)
    else:
        Path("agent.yaml").write_text(f"{key}: {value}")
        arguments += ["--config", "agent.yaml"]
    outcome = roost(*arguments)
    assert outcome.status == CONFIGURATION
    assert f"{given}" in outcome.err
    assert "scripted:Driver edits the tree itself" in outcome.err
    assert how == "line" or "ROOST_AGENT" in outcome.err or "agent.yaml:1" in outcome.err
