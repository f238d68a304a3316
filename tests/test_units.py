"""The systemd units in deploy/systemd: systemd accepts them, and `roost` knows what they say."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import click
import pytest

from roost.cli.agent import agent
from roost.cli.agent_configuration import DEFAULT_FILE
from roost.cli.main import cli
from roost.cli.shared.exit_status import ExitStatus
from roost.configuration.unknown_names import options_by_name
from support.requirements import note_missing
from support.waiting import SECONDS_MAX

FOLDER = Path(__file__).parents[1] / "deploy" / "systemd"
UNITS = sorted(FOLDER.glob("*.service"))
COMMAND = "/opt/roost/bin/roost"
# Variables that systemd, the libraries of OpenStack, or all commands give a meaning.
OTHER_VARIABLES = {
    *("OS_PLACEMENT_CONFIG_DIR", "OS_CLIENT_CONFIG_FILE", "OS_CLOUD"),
    *("ROOST_URL", "ROOST_TOKEN"),
}
AGENT = FOLDER / "roost-agent.service"


def settings(unit: Path, name: str) -> list[str]:
    return re.findall(rf"^{name}=(.*)$", unit.read_text(), re.MULTILINE)


def variables(unit: Path) -> dict[str, str]:
    """The variables of the unit and of its sample file, also those behind a comment sign."""
    text = unit.with_suffix(".env").read_text() + "\n".join(settings(unit, "Environment"))
    return dict(re.findall(r"^#?([A-Z][A-Z_]+)=(.*)$", text, re.MULTILINE))


def arguments(unit: Path) -> list[str]:
    """The arguments of `roost`, with the variables of the sample file."""
    (line,) = settings(unit, "ExecStart")
    for name, value in variables(unit).items():
        line = line.replace(f"${name}", value)
    program, *rest = shlex.split(line)
    assert program == COMMAND
    return rest


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_systemd_finds_nothing_wrong(unit: Path, tmp_path: Path) -> None:
    program = shutil.which("systemd-analyze")
    if program is None:
        note_missing("systemd", "systemd-analyze is not installed")
        pytest.skip("systemd-analyze is not installed")
    copy = tmp_path / unit.name
    # The command is not installed on every machine that runs tests.
    copy.write_text(unit.read_text().replace(COMMAND, "/bin/true"))
    done = subprocess.run(
        [program, "verify", str(copy)],
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_the_command_of_a_unit_is_one_that_roost_takes(unit: Path) -> None:
    name, *rest = arguments(unit)
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    # It parses the options, and refuses those that it does not have. The file is the sample.
    rest = [word.replace("/etc/roost/", f"{FOLDER}/") for word in rest]
    command.make_context(name, rest)


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_unit_tells_systemd_all_that_roost_does_at_signals(unit: Path) -> None:
    assert settings(unit, "Type") == ["notify"]
    assert settings(unit, "ExecReload") == ["/bin/kill -HUP $MAINPID"]
    # The status after wrong options or configuration, which a restart does not mend.
    assert settings(unit, "RestartPreventExitStatus") == [str(ExitStatus.CONFIGURATION.value)]
    assert settings(unit, "ProtectSystem") == ["strict"]
    assert settings(unit, "NoNewPrivileges") == ["yes"]


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_every_variable_of_the_sample_file_means_something(unit: Path) -> None:
    known = options_by_name()
    for name in variables(unit).keys() - OTHER_VARIABLES:
        if name.startswith("ROOST_AGENT_"):
            assert name in {option.envvar for option in agent.params}
            continue
        if name.startswith("ROOST_"):
            assert f"${name}" in unit.read_text()
            continue
        group, option = name.removeprefix("OS_").split("__")
        group = group if group == "DEFAULT" else group.lower()
        assert option.lower() in known[group], name


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_the_user_of_a_unit_is_one_that_sysusers_makes(unit: Path) -> None:
    (user,) = settings(unit, "User")
    made = re.findall(r"^u +(\S+)", (FOLDER / "roost.sysusers.conf").read_text(), re.MULTILINE)
    assert user in made
    assert re.search(
        rf"^d \S+ +0750 root {user} ", (FOLDER / "roost.tmpfiles.conf").read_text(), re.M
    )


def test_the_unit_of_the_agent_reads_the_default_file_with_a_driver() -> None:
    assert arguments(AGENT) == ["agent", "--config", str(DEFAULT_FILE)]
    sample = FOLDER / DEFAULT_FILE.name
    context = agent.make_context("agent", ["--config", str(sample)])
    assert context.params["driver_name"] == "linux"


def test_the_sandbox_of_the_agent_shows_the_machine() -> None:
    """Each of these would hide files below /proc, /sys or /dev that drivers read."""
    for hiding in ("ProcSubset", "PrivateDevices", "RootDirectory", "TemporaryFileSystem"):
        assert settings(AGENT, hiding) == []
    assert settings(AGENT, "ProtectSystem") == ["strict"]
    # Ownership records are the one thing that the agent writes.
    assert settings(AGENT, "StateDirectory") == ["roost-agent"]
