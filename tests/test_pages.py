"""The pages of docs/: a reader finds each of them, and no link leads nowhere."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1]
DOCS = PROJECT / "docs"
INDEX = DOCS / "README.md"
PAGES = [PROJECT / "README.md", *sorted(DOCS.glob("*.md"))]
_LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")
_BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def _name(path: Path) -> str:
    return str(path.relative_to(PROJECT))


def _links(page: Path) -> list[tuple[Path, str]]:
    """The files that a page links to, each with the anchor in it."""
    found = _LINK.findall(_BLOCK.sub("", page.read_text()))
    return [((page.parent / path).resolve() if path else page, anchor) for path, anchor in found]


def _anchors(page: Path) -> set[str]:
    """The anchors that a reader of Markdown makes of the headings."""
    titles = re.findall(r"^#+ (.+)$", _BLOCK.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_the_index_leads_to_every_page() -> None:
    linked = {path for path, _ in _links(INDEX)}
    assert [_name(page) for page in sorted(DOCS.glob("*.md")) if page not in linked | {INDEX}] == []
    assert (INDEX, "") in _links(PROJECT / "README.md")


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_every_link_leads_to_a_heading_or_a_file(page: Path) -> None:
    wrong = [
        f"{_name(path)}#{anchor}"
        for path, anchor in _links(page)
        if not path.exists() or (anchor and anchor not in _anchors(path))
    ]
    assert wrong == []


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_a_page_that_installs_roost_says_how_until_there_is_a_release(page: Path) -> None:
    installs = re.search(r"pip install '?roost\b", page.read_text()) is not None
    assert page == INDEX or not installs or (INDEX, "install") in _links(page)


def test_the_index_names_every_extra_of_an_installation() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].keys() - {"dev"}
    table = INDEX.read_text().partition("| extra |")[2].partition("\n\n")[0]
    named = {name for row in table.splitlines() for name in re.findall(r"`(\w+)`", row[:30])}
    assert named == extras
