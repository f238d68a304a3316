"""The wheel and the sdist: complete, and of use without the source tree."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import check_release
import roost
from support.servers.live_server import clean_environment
from support.waiting import SECONDS_MAX

pytestmark = pytest.mark.slow

PROJECT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both archives, built as `make release` does, but with the tools that are here."""
    directory = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(directory)]
    run(*command, str(PROJECT))
    return directory


@pytest.fixture(scope="module")
def installed(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the files of the wheel; its dependencies are those of the tests."""
    target = tmp_path_factory.mktemp("installed")
    (wheel,) = dist.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target)
    return target


def run(*command: str, directory: Path | None = None, path: Path | None = None) -> str:
    environment = clean_environment({"PYTHONPATH": str(path)} if path else None)
    done = subprocess.run(
        command,
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_wheel_has_every_file_of_the_package_and_the_sdist_all_to_test_it(dist: Path) -> None:
    wheel, sdist = check_release.find_archives(dist, roost.__version__)
    check_release.check_wheel(wheel)
    check_release.check_sdist(sdist)


def test_a_wheel_without_a_module_is_found_out(dist: Path, tmp_path: Path) -> None:
    (wheel,) = dist.glob("*.whl")
    copy = tmp_path / wheel.name
    with zipfile.ZipFile(wheel) as archive, zipfile.ZipFile(copy, "w") as smaller:
        for name in archive.namelist():
            if name != "roost/store/migrations/roost.py":
                smaller.writestr(name, archive.read(name))
    with pytest.raises(check_release.Unfit, match=r"migrations/roost\.py"):
        check_release.check_wheel(copy)


def test_the_description_suits_an_index(dist: Path) -> None:
    check_release.check_metadata(*dist.iterdir())


def test_the_version_stands_in_one_place_and_heads_the_changes() -> None:
    assert check_release.package_version() == roost.__version__
    text = (PROJECT / "CHANGELOG.md").read_text()
    check_release.check_changelog(roost.__version__, text)
    with pytest.raises(check_release.Unfit, match=re.escape("999.0")):
        check_release.check_changelog("999.0", text)


def test_python_m_roost_is_the_command(installed: Path, tmp_path: Path) -> None:
    said = run(sys.executable, "-m", "roost", "--version", directory=tmp_path, path=installed)
    assert said.strip() == f"roost, version {roost.__version__}"


def test_the_files_of_the_wheel_explain_a_word(installed: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "roost", "help", "inventory"]
    assert run(*command, directory=tmp_path, path=installed).startswith("Inventory\n")


def test_the_files_of_the_wheel_serve_the_demo_cloud(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = "import roost; print(roost.__file__)"
    found = run(sys.executable, "-c", where, directory=tmp_path, path=installed)
    assert found.startswith(str(installed))
    monkeypatch.setenv("PYTHONPATH", str(installed))
    check_release.check_service([sys.executable, "-m", "roost"], tmp_path)


@pytest.mark.long
def test_a_new_environment_with_the_wheel_serves_the_demo_cloud(dist: Path) -> None:
    (wheel,) = dist.glob("*.whl")
    check_release.check_installation(wheel, roost.__version__)
