"""`pip install roost` installs the commands of a host, which need no package of the server."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from support.waiting import SECONDS_MAX

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]

# The first finder of imports reports these packages as not installed.
_WITHOUT = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {packages!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
{program}
"""
_COMMAND = "from roost.cli.main import main; main()"


def _server_packages() -> set[str]:
    """The importable names of all packages that only the server needs."""
    wanted = {_plain(Requirement(text).name) for text in PROJECT["optional-dependencies"]["server"]}
    names = {
        package
        for package, distributions in metadata.packages_distributions().items()
        if wanted & set(map(_plain, distributions))
    }
    assert names >= {"numpy", "sqlalchemy", "alembic", "oslo_config", "httptools", "orjson"}
    return names


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _roost(*arguments: str, program: str = _COMMAND) -> subprocess.CompletedProcess[str]:
    text = _WITHOUT.format(packages=_server_packages(), program=program)
    return subprocess.run(
        [sys.executable, "-c", text, *arguments],
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        *("agent", "driver list", "driver show", "tree show", "tree export", "tree apply", "top"),
        *("owner list", "context list"),
        *("candidates", "explain", "why", "capacity", "whatif", "fragmentation", "resilience"),
        *("provider list", "provider set", "consumer list", "claim", "move", "release", "usage"),
        *("aggregate list", "trait list", "class list", "doctor", "completion", "help", "man"),
    ],
)
def test_commands_of_the_host_need_no_package_of_the_server(command: str) -> None:
    outcome = _roost(*command.split(), "--help")
    assert outcome.returncode == 0, outcome.stderr
    assert f"roost {command} " in outcome.stdout.replace("-c", "roost")


def test_client_library_needs_no_package_of_the_server() -> None:
    outcome = _roost(
        "agent", "--driver", "linux", "--once", "--dry-run", "--url", "http://127.0.0.1:9"
    )
    assert "127.0.0.1:9" in outcome.stderr
    assert "Traceback" not in outcome.stderr


def test_tests_of_drivers_say_what_to_install() -> None:
    outcome = _roost(program="import roost.testing")
    last = outcome.stderr.splitlines()[-1]
    assert last.startswith("ImportError: `roost.testing` runs the server")
    assert last.endswith("pip install 'roost[server]'")


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ["serve", "--demo"],
        ["serve", "--help"],
        ["db", "check"],
        ["check-config"],
        ["policy", "sample"],
        ["token", "list"],
        ["import", "--from-url", "x"],
    ],
)
def test_commands_of_the_server_say_what_to_install(arguments: list[str]) -> None:
    outcome = _roost(*arguments)
    assert outcome.returncode == 1
    assert "pip install 'roost[server]'" in " ".join(outcome.stderr.split())
    assert "Traceback" not in outcome.stderr


def test_help_lists_the_commands_of_the_server_with_what_to_install() -> None:
    outcome = _roost("--help")
    assert outcome.returncode == 0, outcome.stderr
    assert re.search(r"serve +Not installed: pip install 'roost\[server\]'", outcome.stdout)
    assert re.search(r"agent +[A-Z]", outcome.stdout)
