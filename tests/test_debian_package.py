"""The Debian package of the agent: its recipe agrees with the project, and builds."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import roost
from support.requirements import note_missing
from support.waiting import SECONDS_MAX

PROJECT = Path(__file__).parents[1]
RECIPE = PROJECT / "deploy" / "debian"


def test_the_package_has_the_version_of_the_project() -> None:
    first_line = (RECIPE / "changelog").read_text().splitlines()[0]
    assert first_line.startswith(f"roost ({roost.__version__})")


def test_every_file_that_the_recipe_takes_exists() -> None:
    rules = (RECIPE / "rules").read_text()
    taken = re.findall(r"\bdeploy/[\w./-]+", rules)
    assert len(taken) >= 5
    for name in taken:
        assert (PROJECT / name).is_file(), name


@pytest.mark.long
def test_the_package_builds_and_its_command_runs(tmp_path: Path) -> None:
    if shutil.which("dpkg-buildpackage") is None or shutil.which("dh") is None:
        note_missing("debhelper", "debhelper is not installed")
        pytest.skip("debhelper is not installed")
    source = tmp_path / "source"
    shutil.copytree(
        PROJECT, source, ignore=shutil.ignore_patterns(".*", "build", "__pycache__", "tests")
    )
    built = subprocess.run(
        ["make", "deb"],
        cwd=source,
        capture_output=True,
        text=True,
        timeout=4 * SECONDS_MAX,
        check=False,
    )
    assert built.returncode == 0, built.stderr[-2000:]
    (package,) = (source / "build" / "deb").glob("roost-agent_*.deb")
    unpacked = tmp_path / "unpacked"
    subprocess.run(["dpkg-deb", "-x", package, unpacked], check=True)
    assert (unpacked / "etc/roost/agent.yaml").is_file()
    assert (unpacked / "lib/systemd/system/roost-agent.service").is_file()
    assert (unpacked / "etc/default/roost-agent").stat().st_mode & 0o777 == 0o600
    users = (unpacked / "usr/lib/sysusers.d/roost-agent.conf").read_text()
    assert users.startswith("u roost-agent ")
    # Nothing names the directory that the package was built in.
    in_use = [unpacked / "opt/roost/pyvenv.cfg", *(unpacked / "opt/roost/bin").iterdir()]
    for file in in_use:
        if file.is_file() and not file.is_symlink():
            assert str(tmp_path).encode() not in file.read_bytes(), file
    python = unpacked / "opt/roost/bin/python3"
    shown = subprocess.run(
        [python, "-m", "roost", "agent", "--driver", "linux", "--dry-run", "--offline"],
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert (shown.returncode, "VCPU" in shown.stdout) == (0, True), shown.stderr
