"""The Containerfile: its steps work in a plain directory, and its command is one of `roost`."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

import check_release
from roost.cli.main import cli
from support.servers.live_server import clean_environment
from support.waiting import SECONDS_MAX

PROJECT = Path(__file__).parents[1]
FILE = PROJECT / "deploy" / "container" / "Containerfile"


def instructions(stage: int) -> list[tuple[str, str]]:
    """The instructions of a stage, each in one line."""
    text = re.sub(r"^#.*\n", "", FILE.read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    found = [tuple(line.split(maxsplit=1)) for line in text.splitlines() if line.strip()]
    starts = [index for index, (name, _) in enumerate(found) if name == "FROM"]
    ends = [*starts[1:], len(found)]
    return [(name, rest.strip()) for name, rest in found[starts[stage] : ends[stage]]]


def only(stage: int, name: str) -> str:
    (rest,) = [rest for found, rest in instructions(stage) if found == name]
    return rest


def test_the_image_runs_a_command_of_roost_and_not_as_root() -> None:
    assert json.loads(only(1, "ENTRYPOINT")) == ["roost"]
    name, *arguments = json.loads(only(1, "CMD"))
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    context = command.make_context(name, arguments)
    assert f"{context.params['port']}" == only(1, "EXPOSE")
    user, _, group = only(1, "USER").partition(":")
    made = only(1, "RUN")
    assert f"--uid {user} " in made
    assert f"--gid {group} " in made
    assert int(user) > 0
    assert only(1, "STOPSIGNAL") == "SIGTERM"


def test_the_health_check_asks_the_port_of_the_command() -> None:
    check = only(1, "HEALTHCHECK")
    assert f"http://127.0.0.1:{only(1, 'EXPOSE')}/healthz" in check


def test_the_builder_gets_all_that_a_wheel_needs() -> None:
    copied = " ".join(rest for name, rest in instructions(0) if name == "COPY")
    admitted = (PROJECT / ".containerignore").read_text()
    for path in ("pyproject.toml", "README.md", "LICENSE", "src", "docs/concepts.md"):
        assert path in copied
        assert f"!{path}\n" in admitted


@pytest.mark.long
def test_the_steps_of_the_builder_make_an_environment_that_serves(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for name, rest in instructions(0):
        if name == "COPY":
            *paths, target = rest.split()
            for path in paths:
                # As in an image: the content of a directory goes into the target.
                if (PROJECT / path).is_dir():
                    shutil.copytree(PROJECT / path, source / target)
                else:
                    (source / target).parent.mkdir(exist_ok=True)
                    shutil.copy(PROJECT / path, source / target)
    steps = only(0, "RUN").replace("/opt/roost", f"{tmp_path}/roost")
    steps = steps.replace("/wheels", f"{tmp_path}/wheels").replace("${EXTRAS}", "server")
    # The image has `python` and `pip` in its path. Here they belong to an environment.
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "tools"], check=True)
    environment = clean_environment({"PATH": f"{tmp_path}/tools/bin:/usr/bin:/bin"})
    done = subprocess.run(
        ["sh", "-euc", steps],
        cwd=source,
        env=environment,
        capture_output=True,
        text=True,
        timeout=2 * SECONDS_MAX,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    shutil.rmtree(source)
    assert not (tmp_path / "roost" / "bin" / "pip").exists()
    check_release.check_service([f"{tmp_path}/roost/bin/roost"], tmp_path)
