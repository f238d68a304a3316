"""The configuration of `roost agent`: file, variables, precedence, and what is wrong with them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import pytest
import yaml

from roost.cli import agent_configuration
from roost.cli.agent import agent
from roost.cli.agent_configuration import key_of
from roost.cli.main import cli
from roost.client.ownership.store import default_directory
from support.roost_command import Outcome, roost

CONFIGURATION = 78
SAMPLE = Path(__file__).parents[3] / "deploy" / "systemd" / "agent.yaml"
OPTIONS = [option for option in agent.params if isinstance(option, click.Option)]


@pytest.fixture(autouse=True)
def no_file_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The default file is one of the test, which does not exist yet."""
    path = tmp_path / "etc" / "agent.yaml"
    monkeypatch.setattr(agent_configuration, "DEFAULT_FILE", path)
    return path


@pytest.fixture
def configured(tmp_path: Path) -> Any:
    """Prints the configuration that a file, variables and arguments make."""

    def show(text: str, *arguments: str) -> Outcome:
        Path("agent.yaml").write_text(text)
        return roost("agent", "--config", "agent.yaml", "--show-config", "--json", *arguments)

    return show


def in_force(outcome: Outcome) -> dict[str, tuple[Any, str]]:
    """The options that have no default, with value and place."""
    assert outcome.status == 0, outcome.err
    shown = json.loads(outcome.out)["options"]
    return {
        one["name"]: (one["value"], one["origin"])
        for one in shown
        if one["origin"] != "default" and one["name"] != "json"
    }


@pytest.mark.parametrize(
    ("variable", "value"),
    [("FOO", "1"), ("INTERVAL", "soon"), ("CONFIG", "/nowhere/agent.yaml"), ("UUID", "x")],
)
def test_help_needs_no_valid_configuration(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(f"ROOST_AGENT_{variable}", value)
    outcome = roost("agent", "--help")
    assert (outcome.status, outcome.err) == (0, "")
    assert "--interval" in outcome.out
    assert roost("agent", "--driver", "linux", "--dry-run", "--offline").status == CONFIGURATION


# -- the three places


def test_the_sample_file_names_every_option_and_is_accepted() -> None:
    outcome = roost("agent", "--config", str(SAMPLE), "--show-config", "--json")
    assert outcome.status == 0
    assert json.loads(outcome.out)["file"] == str(SAMPLE)
    uncommented = "\n".join(
        line.replace("#", "", 1) if line.lstrip().startswith("#") and ": " in line else line
        for line in SAMPLE.read_text().splitlines()
    )
    for option in OPTIONS:
        actions = ("config", "show_config", "once", "dry_run", "offline", "output")
        if option.name not in actions:
            assert f"\n{key_of(option)}:" in uncommented, option.name


def test_every_option_can_be_given_in_the_file(configured: Any) -> None:
    outcome = configured(
        """
driver: linux
options:
  {reserved_cpus: 1, reserved_memory_mb: 1024, cpu_allocation_ratio: 1.50, disks: ["*", "!sda"]}
name: host
uuid: 5A1CBBC0-7F0E-4B6C-9A53-3A3F0D1F2B11
interval: 5
owner: rack
records: here
adopt: true
accept-loss: true
metrics-file: m.prom
once: false
dry-run: true
offline: true
output: yaml
verbose: true
debug: true
json: true
url: http://127.0.0.1:1
token: geheim
timeout: 2.5
"""
    )
    shown = in_force(outcome)
    assert {name: value for name, (value, _) in shown.items()} == {
        "driver": "linux",
        "options.reserved_cpus": "1",
        "options.reserved_memory_mb": "1024",
        "options.cpu_allocation_ratio": "1.50",
        "options.disks": "*,!sda",
        "name": "host",
        "uuid": "5a1cbbc0-7f0e-4b6c-9a53-3a3f0d1f2b11",
        "interval": 5.0,
        "owner": "rack",
        "records": "here",
        "adopt": True,
        "accept-loss": True,
        "metrics-file": "m.prom",
        "once": False,
        "dry-run": True,
        "offline": True,
        "output": "yaml",
        "verbose": True,
        "debug": True,
        "url": "http://127.0.0.1:1",
        "token": "***",
        "timeout": 2.5,
    }
    assert shown["interval"] == (5.0, "agent.yaml:7")
    assert "geheim" not in outcome.out + outcome.err


def test_every_option_has_a_variable() -> None:
    variables = {option.envvar for option in OPTIONS}
    assert None not in variables
    assert {"ROOST_AGENT_DRIVER", "ROOST_AGENT_OPTIONS", "ROOST_AGENT_OS_CLOUD"} <= variables
    assert {"ROOST_AGENT_METRICS_FILE", "ROOST_AGENT_JSON", "ROOST_AGENT_CACERT"} <= variables


def test_the_command_line_beats_variables_and_variables_beat_the_file(
    configured: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "driver: linux\nname: of-file\nowner: of-file\ninterval: 7\n"
    monkeypatch.setenv("ROOST_AGENT_NAME", "of-variable")
    monkeypatch.setenv("ROOST_AGENT_OWNER", "of-variable")
    shown = in_force(configured(text, "--name", "of-line"))
    assert shown["name"] == ("of-line", "command line")
    assert shown["owner"] == ("of-variable", "ROOST_AGENT_OWNER")
    assert shown["interval"] == (7.0, "agent.yaml:4")


def test_an_empty_variable_counts_as_not_given(
    configured: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROOST_AGENT_NAME", "")
    assert in_force(configured("driver: linux\nname: of-file\n"))["name"][0] == "of-file"


def test_each_option_of_the_driver_has_a_precedence_of_its_own(
    configured: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROOST_AGENT_OPTIONS", "reserved_cpus=0 'disks=*,!sd a'")
    text = "driver: linux\noptions: {reserved_cpus: 3, reserved_memory_mb: 1}\n"
    shown = in_force(configured(text, "--option", "pci=none"))
    assert shown["options.pci"] == ("none", "command line")
    assert shown["options.reserved_cpus"] == ("0", "ROOST_AGENT_OPTIONS")
    assert shown["options.disks"] == ("*,!sd a", "ROOST_AGENT_OPTIONS")
    assert shown["options.reserved_memory_mb"] == ("1", "agent.yaml:2")


def test_options_of_another_driver_in_the_file_do_not_apply(configured: Any) -> None:
    Path("tree.yaml").write_text("providers: []")
    text = "driver: linux\noptions: {reserved_cpus: 3}\n"
    shown = in_force(configured(text, "--driver", "file", "--option", "path=tree.yaml"))
    assert [name for name in shown if name.startswith("options.")] == ["options.path"]


def test_values_of_the_file_reach_the_driver_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, object] = {}

    class Driver:
        def __init__(self, size: str, ratio: str, names: str, active: str, text: str) -> None:
            seen.update(size=size, ratio=ratio, names=names, active=active, text=text)

        def update_provider_tree(self, provider_tree: object, nodename: str) -> None: ...

    module = ModuleType("native")
    vars(module)["Driver"] = Driver
    monkeypatch.setitem(sys.modules, "native", module)
    Path("agent.yaml").write_text(
        "driver: native:Driver\n"
        "options: {size: 8, ratio: 1.0, names: [a, 2, true], active: true, text: 'x y'}\n"
    )
    assert roost("agent", "--config", "agent.yaml", "--dry-run", "--offline").status == 0
    assert seen == {
        "size": "8",
        "ratio": "1.0",
        "names": "a,2,true",
        "active": "true",
        "text": "x y",
    }


# -- the default file


def test_the_default_file_is_in_force_if_it_exists(no_file_of_this_machine: Path) -> None:
    assert roost("agent", "--show-config", "--driver", "linux").lines[0].endswith(": none")
    no_file_of_this_machine.parent.mkdir()
    no_file_of_this_machine.write_text("driver: linux")
    outcome = roost("agent", "--show-config")
    assert outcome.status == 0
    assert outcome.lines[0] == f"# configuration file: {no_file_of_this_machine}"
    assert outcome.lines[1] == f"driver: linux    # {no_file_of_this_machine}:1"


def test_an_empty_file_says_nothing() -> None:
    outcome = roost("agent", "--config", "/dev/null", "--driver", "linux", "--show-config")
    assert (outcome.status, outcome.lines[0]) == (0, "# configuration file: /dev/null")


def test_what_is_shown_is_a_file_that_says_the_same() -> None:
    arguments = ["--driver", "linux", "--option", "disks=*,!sda", "--name", "a b", "--adopt"]
    arguments += ["--url", "http://host", "--token", "hush"]
    Path("shown.yaml").write_text(roost("agent", *arguments, "--show-config").out)
    again = roost("agent", "--config", "shown.yaml", "--show-config", "--json")
    assert in_force(again)["options.disks"][0] == "*,!sda"
    assert in_force(again)["name"][0] == "a b"
    assert in_force(again)["adopt"][0] is True
    # The hidden token must not become a token.
    assert "token" not in in_force(again)
    hidden = roost("agent", "--driver", "linux", "--option", "token=hush", "--show-config").out
    assert yaml.safe_load(hidden)["driver"] == "linux"
    assert "options" not in yaml.safe_load(hidden)


# -- what is wrong


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("intervall: 5", "agent.yaml:1:1: unknown key `intervall`: did you mean `interval`?"),
        ("os_cloud: x", "did you mean `os-cloud`?"),
        ("config: other.yaml", "unknown key `config`"),
        ('interval: "5"', "`interval` must be a number, but YAML reads `5` as text"),
        ("interval: 0", "`interval` is 0: write 1 or more"),
        ("name: 12", '`name` must be text, but YAML reads `12` as a number: write "12" in quotes'),
        ("adopt: 1", "`adopt` must be true or false"),
        ("driver:", "`driver` must be text"),
        ("options: [a=b]", "`options` must be a mapping"),
        ("options: {a: {b: c}}", "`options.a` must be text"),
        ("options: {disks: ['a,b']}", "agent.yaml:1:19: an item of a list has no comma"),
        ("driver: linux\ndriver: file", "agent.yaml:2:1: `driver` is here twice"),
        ("- driver: linux", "must be a mapping"),
        ("driver: {", "agent.yaml:1:10: this cannot be read as YAML"),
        ("driver: linux\nuuid: x", "agent.yaml:2: x: that is no UUID"),
        ("driver: linux\noutput: csv\n", "agent.yaml:2"),
        ("driver: linuks", "agent.yaml:1: There is no driver 'linuks'"),
        (
            "driver: linux\noptions: {reserved_cpus: x}",
            "agent.yaml:2: Driver linux: option reserved_cpus is 'x'",
        ),
        ("driver: linux\nurl: ftp://x", "agent.yaml:2: the URL 'ftp://x'"),
        ("driver: linux\nmetrics-file: m.txt\nonce: true", "agent.yaml:2: The metrics file m.txt"),
    ],
    ids=lambda text: text.split("\n")[-1],
)
def test_an_error_names_the_file_and_the_line(text: str, words: str) -> None:
    Path("agent.yaml").write_text(text)
    outcome = roost("agent", "--config", "agent.yaml")
    assert (outcome.status, outcome.out) == (CONFIGURATION, "")
    assert words in outcome.err


def test_a_file_that_cannot_be_read_is_an_error() -> None:
    outcome = roost("agent", "--config", "missing.yaml", "--driver", "linux")
    assert outcome.status == CONFIGURATION
    assert "The configuration missing.yaml cannot be read: No such file" in outcome.err


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("ROOST_AGENT_INTERVAL", "soon", "Invalid value for ROOST_AGENT_INTERVAL"),
        ("ROOST_AGENT_ADOPT", "perhaps", "Invalid value for ROOST_AGENT_ADOPT"),
        ("ROOST_AGENT_OPTIONS", "--interval 5", "ROOST_AGENT_OPTIONS: --interval: write it as KEY"),
        ("ROOST_AGENT_OPTIONS", "a='b", "close the quotes"),
        ("ROOST_AGENT_INTERVALL", "5", "Did you mean ROOST_AGENT_INTERVAL?"),
        ("ROOST_AGENT_UUID", "x", "ROOST_AGENT_UUID: x: that is no UUID"),
    ],
)
def test_an_error_names_the_variable(
    name: str, value: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    outcome = roost("agent", "--driver", "linux")
    assert outcome.status == CONFIGURATION
    assert words in outcome.err


# -- the server


def shown_server(*arguments: str) -> str:
    return roost("agent", "--driver", "linux", "--show-config", *arguments).lines[-1]


def test_an_address_beats_what_lower_places_say_of_the_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Path("agent.yaml").write_text("url: http://127.0.0.1:1\ntoken: geheim\n")
    file = ("--config", "agent.yaml")
    assert shown_server() == "# server: http://127.0.0.1:8778"
    assert shown_server(*file) == "# server: http://127.0.0.1:1"
    monkeypatch.setenv("ROOST_URL", "http://127.0.0.1:2")
    assert shown_server(*file) == "# server: http://127.0.0.1:2    # ROOST_URL"
    monkeypatch.setenv("ROOST_AGENT_URL", "http://127.0.0.1:3")
    assert shown_server(*file) == "# server: http://127.0.0.1:3"
    assert shown_server(*file, "--url", "http://127.0.0.1:4") == "# server: http://127.0.0.1:4"
    lines = roost("agent", "--driver", "linux", *file, "--show-config").lines
    assert lines[-2] == f"# directory of the records: {default_directory()}"
    assert '# token: "***"    # agent.yaml:2, not in force' in lines


def test_a_cloud_on_the_command_line_beats_the_url_of_the_file() -> None:
    Path("agent.yaml").write_text("url: http://127.0.0.1:1\ntoken: geheim\n")
    outcome = roost(
        *("agent", "--driver", "linux", "--config", "agent.yaml", "--os-cloud", "nowhere"),
        "--once",
    )
    assert outcome.status == CONFIGURATION
    assert "'nowhere'" in outcome.err
    assert "given together" not in outcome.err


def test_every_variable_is_in_the_help() -> None:
    text = roost("agent", "--help").out
    assert "ROOST_AGENT_INTERVAL" in text
    assert cli.get_command(click.Context(cli), "agent") is agent


@pytest.mark.parametrize("option", ["--interval", "--missing-minutes", "--timeout"])
def test_a_time_that_is_no_number_is_refused(option: str) -> None:
    outcome = roost("agent", "--driver", "linux", option, "nan", "--dry-run", "--offline")
    assert outcome.status == CONFIGURATION
    assert option in outcome.err


@pytest.mark.parametrize("line", ["owner: a/b", "metrics-file: metrics.txt"])
def test_what_the_agent_could_not_start_with_is_not_shown_as_right(
    configured: Any, line: str
) -> None:
    outcome = configured(f"driver: linux\nurl: http://127.0.0.1:1\n{line}\n")
    assert outcome.status == CONFIGURATION
    assert "agent.yaml:3" in outcome.err
