"""Checks the wheel and the sdist in a directory, as `make release` builds them.

    python deploy/check_release.py dist

An operator gets these files without the source tree. So the check installs the wheel into a new
environment, and serves the demo cloud from there, in another directory.
"""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.error
import urllib.request
import venv
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PROJECT = Path(__file__).parents[1]
PACKAGE = PROJECT / "src" / "roost"
# The wheel has these beside the files of the package. pyproject.toml says where they come from.
PAGES = {"roost/cli/concepts.md"}
# An sdist without these can be neither built nor tested.
SDIST_NEEDS = (
    "pyproject.toml",
    "LICENSE",
    "README.md",
    "CHANGELOG.md",
    "Makefile",
    "src/roost/__init__.py",
    "tests/conftest.py",
    "conformance/databases.py",
    "conformance/requirements.txt",
    "deploy/systemd/roost.service",
    "docs/operating.md",
)
# Nothing of a developer's machine belongs into an archive.
UNWANTED = re.compile(r"(^|/)(\.venv[^/]*|__pycache__|\.[a-z_]+_cache|\.hypothesis|\.git)(/|$)")
INSTALL_SECONDS = 600
START_SECONDS = 60


class Unfit(Exception):
    """The release has a fault."""


def package_version() -> str:
    """The version, from the only place that has it."""
    found = re.search(r'^__version__ = "([^"]+)"$', (PACKAGE / "__init__.py").read_text(), re.M)
    if found is None:
        raise Unfit("src/roost/__init__.py has no line __version__ = ...")
    return found[1]


def check_changelog(version: str, text: str) -> str:
    """The heading of the newest version, which must be the one of the package."""
    heading = re.search(r"^## (.+)$", text, re.M)
    if heading is None or heading[1].split()[0] != version:
        newest = heading[1] if heading else "nothing"
        raise Unfit(
            f"CHANGELOG.md begins with {newest}, and the package is {version}. Write a chapter "
            "for this version, or change __version__."
        )
    return heading[1]


def find_archives(directory: Path, version: str) -> tuple[Path, Path]:
    """The wheel and the sdist of this version, and no other file beside them."""
    wheel = directory / f"roost-{version}-py3-none-any.whl"
    sdist = directory / f"roost-{version}.tar.gz"
    found = {path for path in directory.iterdir() if not path.name.startswith(".")}
    if found != {wheel, sdist}:
        names = ", ".join(sorted(path.name for path in found)) or "nothing"
        raise Unfit(f"{directory} has {names} instead of {wheel.name} and {sdist.name}.")
    return wheel, sdist


def check_wheel(wheel: Path) -> None:
    """The wheel has every file of the package, the page of `roost help`, and nothing else."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    wanted = {
        f"roost/{path.relative_to(PACKAGE)}"
        for path in PACKAGE.rglob("*")
        if path.is_file() and not UNWANTED.search(str(path.relative_to(PACKAGE)))
    }
    wanted |= PAGES
    missing = wanted - names
    strange = {name for name in names - wanted if ".dist-info/" not in name}
    if missing or strange:
        raise Unfit(f"{wheel.name} lacks {sorted(missing)} and should not have {sorted(strange)}.")


def check_sdist(sdist: Path) -> None:
    """The sdist has what a build and the tests need, and nothing of this machine."""
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    missing = [name for name in SDIST_NEEDS if name not in names]
    unwanted = sorted(name for name in names if UNWANTED.search(name))
    if missing or unwanted:
        raise Unfit(f"{sdist.name} lacks {missing} and should not have {unwanted[:5]}.")


def check_metadata(*archives: Path) -> None:
    """The description and the fields of both archives are such that an index takes them."""
    _run(sys.executable, "-m", "twine", "check", "--strict", *map(str, archives))


def check_installation(wheel: Path, version: str) -> None:
    """The wheel works in a new environment, in a directory without the source tree."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        environment = directory / "environment"
        venv.create(environment, with_pip=True)
        _run(str(environment / "bin" / "pip"), "install", "--quiet", f"{wheel}[server]")
        roost = str(environment / "bin" / "roost")
        python = str(environment / "bin" / "python")
        for command in ([roost, "--version"], [python, "-m", "roost", "--version"]):
            said = _run(*command, directory=directory)
            if not said.strip().endswith(f" {version}"):
                raise Unfit(f"{' '.join(command)} says {said.strip()!r}, not {version}.")
        check_service([roost], directory)


def check_service(roost: list[str], directory: Path) -> None:
    """The command serves the demo cloud from this directory, and answers."""
    with _serving(roost, directory) as url:
        _wait_for_answer(url)


@contextmanager
def _serving(roost: list[str], directory: Path) -> Iterator[str]:
    """`roost serve --demo` at a spare port."""
    with socket.create_server(("127.0.0.1", 0)) as spare:
        port = spare.getsockname()[1]
    database = f"sqlite:///{directory}/placement.db"
    options = ["--demo", "--port", str(port), "--workers", "1", "--db", database]
    with (
        open(directory / "serve.log", "wb") as log,
        subprocess.Popen(
            [*roost, "serve", *options], stdout=log, stderr=log, cwd=directory
        ) as process,
    ):
        try:
            yield f"http://127.0.0.1:{port}"
        except Unfit as error:
            raise Unfit(f"{error}\n{(directory / 'serve.log').read_text()[-2000:]}") from None
        finally:
            process.terminate()


def _wait_for_answer(url: str) -> None:
    question = urllib.request.Request(
        f"{url}/allocation_candidates?resources=PCPU:1&limit=1",
        headers={"X-Auth-Token": "admin", "OpenStack-API-Version": "placement 1.39"},
    )
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(question, timeout=10) as answer:
                if not json.load(answer)["allocation_requests"]:
                    raise Unfit("The installed server has no candidates in its demo cloud.")
                return
        except urllib.error.HTTPError as error:
            raise Unfit(f"The installed server answers {error.code}.") from None
        except OSError:
            time.sleep(0.1)
    raise Unfit(f"The installed server does not answer within {START_SECONDS} seconds.")


def _run(*command: str, directory: Path | None = None) -> str:
    done = subprocess.run(
        command,
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=INSTALL_SECONDS,
        check=False,
    )
    if done.returncode:
        raise Unfit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def main(directory: Path) -> None:
    """Check everything, and say what holds."""
    version = package_version()
    heading = check_changelog(version, (PROJECT / "CHANGELOG.md").read_text())
    wheel, sdist = find_archives(directory, version)
    check_wheel(wheel)
    check_sdist(sdist)
    check_metadata(wheel, sdist)
    check_installation(wheel, version)
    print(f"{wheel.name} and {sdist.name} are complete, installable, and serve.")
    if "unreleased" in heading:
        print(f"CHANGELOG.md says {heading!r}: write the date before you publish.")


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]))
    except Unfit as error:
        sys.exit(f"check_release: {error}")
