"""The tests of docs/test-your-driver.md, executed by pytest as the page says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.code_blocks import code_blocks, conversation, write_modules
from support.waiting import SECONDS_MAX

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "test-your-driver.md"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A directory with the drivers and the tests of the pages."""
    write_modules(DOCS / "write-a-driver.md", tmp_path)
    write_modules(PAGE, tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    return tmp_path


def run(project: Path, *arguments: str) -> str:
    """What pytest prints in the directory; all tests pass."""
    scripts = str(Path(sys.executable).parent)
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
        cwd=project,
        env={
            **{name: value for name, value in os.environ.items() if "PYTEST" not in name},
            "PYTHONPATH": ".",
            "PATH": f"{scripts}:{os.environ['PATH']}",
            "STATE_DIRECTORY": str(project / "state"),
        },
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def test_all_tests_of_the_page_pass(project: Path) -> None:
    names = {path.name for path in project.glob("test_*.py")}
    assert names == {
        "test_rack_driver.py",
        "test_vgpu_driver.py",
        "test_faults.py",
        "test_agent.py",
    }
    assert "5 passed" in run(project)


def test_the_first_test_takes_ten_lines() -> None:
    first = next(code_blocks(PAGE, "python")).text
    code = [line for line in first.splitlines() if line.strip() and not line.startswith("#")]
    drawn = first.split('"""')[1].splitlines()
    assert len(code) - len(drawn) <= 10


def test_the_command_of_the_page_names_the_first_test() -> None:
    (block,) = code_blocks(PAGE, "console")
    assert conversation(block) == [("PYTHONPATH=. pytest -q test_rack_driver.py", "")]


def test_a_driver_with_a_fault_fails_the_tests_of_the_page(project: Path) -> None:
    driver = project / "rack_driver.py"
    driver.write_text(driver.read_text().replace("if not provider_tree.exists(name):", "if True:"))
    with pytest.raises(AssertionError, match="test_the_second_report_changes_nothing"):
        run(project, "test_rack_driver.py")
