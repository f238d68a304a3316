"""`roost man`: a page for every command, out of the text of its help."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from roost.cli.main import COMMANDS
from support.roost_command import roost


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """All pages by name."""
    directory = tmp_path_factory.mktemp("man")
    outcome = roost("man", "--directory", str(directory / "man1"))
    assert outcome.status == 0
    assert re.fullmatch(r"\d+ pages written to .*/man1\n", outcome.err)
    return {path.stem: path for path in (directory / "man1").iterdir()}


def test_every_command_has_a_page(pages: dict[str, Path]) -> None:
    assert {f"roost-{name}" for name in COMMANDS} <= pages.keys()
    assert {"roost", "roost-provider-list", "roost-db-check"} <= pages.keys()


def test_a_page_has_the_text_of_the_help() -> None:
    page = roost("man", "provider", "set").out
    assert page.startswith('.TH "ROOST\\-PROVIDER\\-SET" 1 ')
    for part in (
        ".SH NAME\nroost\\-provider\\-set \\- Change a provider",
        ".SH SYNOPSIS\n.B roost provider set\n[OPTIONS] NAME_OR_UUID",
        ".B \\-\\-dry\\-run\nPrint what would change, and change nothing.",
        ".B \\-h, \\-\\-help\n",
        ".SH EXAMPLES\n.nf\nroost provider set compute\\-1 ",
        ".SH SEE ALSO\n.BR roost\\-provider (1)",
    ):
        assert part in page


def test_no_line_of_a_text_is_a_command_of_man(pages: dict[str, Path]) -> None:
    known = (".TH ", ".SH ", ".TP", ".B ", ".BR ", ".PP", ".nf", ".fi")
    for path in pages.values():
        for line in path.read_text().splitlines():
            assert not line.startswith((".", "'")) or line.startswith(known), (path.name, line)
            assert "\b" not in line, (path.name, line)


@pytest.mark.skipif(shutil.which("mandoc") is None, reason="needs mandoc")
def test_mandoc_finds_no_fault(pages: dict[str, Path]) -> None:
    found = subprocess.run(
        ["mandoc", "-Tlint", "-Wwarning", *map(str, pages.values())],
        capture_output=True,
        text=True,
        check=False,
    )
    # A page without a date is the same in every build.
    faults = [line for line in found.stdout.splitlines() if "missing date" not in line]
    assert faults == []


@pytest.mark.skipif(shutil.which("man") is None, reason="needs man")
def test_man_shows_a_page(pages: dict[str, Path]) -> None:
    shown = subprocess.run(
        ["man", "--warnings", "-l", str(pages["roost-provider-list"])],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/bin:/bin", "MANWIDTH": "80", "LC_ALL": "C.UTF-8"},
    )
    assert shown.stderr == ""
    assert "roost-provider-list - List providers" in shown.stdout


def test_an_unknown_command_is_answered_with_near_ones() -> None:
    outcome = roost("man", "provider", "lst")
    assert outcome.status == 1
    assert "has no command lst. Near it: list" in outcome.err
    assert outcome.err.splitlines()[-1] == "Next: roost provider --help"


def test_a_word_after_a_command_is_no_command() -> None:
    outcome = roost("man", "provider", "list", "x")
    assert "`roost provider list` has no command x." in outcome.err
