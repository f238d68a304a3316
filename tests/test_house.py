"""The rules of the house: one word for one thing, and sentences with a named subject."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.prose import PROJECT, remarks_on

SOURCES = sorted((PROJECT / "src").rglob("*.py"))
ROOMS = sorted(
    path
    for house in (PROJECT / "src" / "roost", PROJECT / "tests")
    for path in house.iterdir()
    if path.is_dir() and path.name != "__pycache__"
)
MODULES = [
    f"/{path.relative_to(PROJECT)}"
    for folder in ("src", "tests", "conformance", "differential", "bench")
    for path in (PROJECT / folder).rglob("*.py")
]
PAGES = [
    *(
        PROJECT / name
        for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md")
    ),
    *sorted((PROJECT / "docs").glob("*.md")),
    PROJECT / "tests" / "README.md",
    *sorted((PROJECT / "src").rglob("README.md")),
]

# A reader finds a module by the names in its room.
MODULES_OF_A_ROOM_MAX = 12
# ARCHITECTURE.md is read in one sitting.
ARCHITECTURE_BYTES_MAX = 12 * 1024


def _name(path: Path) -> str:
    return str(path.relative_to(PROJECT))


def test_no_two_classes_have_one_name() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in SOURCES:
        for name in re.findall(r"^ *class (\w+)[(:]", path.read_text(), re.MULTILINE):
            places[name].append(_name(path))
    assert "Forest" in places
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}


def test_no_text_gives_a_number_an_exponent() -> None:
    """`:g` writes 1048576 as 1.04858e+06. `whole_number` and `plain_number` do not."""
    rounding = {"src/roost/model/text.py", "src/roost/store/databases/mysql/__init__.py"}
    found = [
        _name(path)
        for path in SOURCES
        if re.search(r":[.\d]*g\}|%[.\d]*g\b", path.read_text()) and _name(path) not in rounding
    ]
    assert found == []


def test_the_glossary_of_the_search_has_at_most_twenty_words() -> None:
    page = (PROJECT / "src" / "roost" / "search" / "README.md").read_text()
    rows = page.partition("| --- | --- |\n")[2].strip().splitlines()
    words = [row.split("|")[1].strip() for row in rows]
    assert "forest" in words
    assert len(words) == len(set(words)) <= 20


def test_no_alias_has_the_name_of_another_alias_or_class() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in SOURCES:
        name = _name(path)
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                places[node.name].append(name)
            elif isinstance(node, (ast.Assign, ast.AnnAssign)):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for target in targets:
                    if isinstance(target, ast.Name) and _is_type_name(target.id):
                        places[target.id].append(name)
    assert "Solution" in places
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}


def _is_type_name(name: str) -> bool:
    """Whether a name is written as those of classes are; one letter stands for any type."""
    bare = name.lstrip("_")
    return len(bare) > 1 and bare[0].isupper() and not bare.isupper() and "_" not in bare


# What differs between databases stands in these modules. Configuration has options for a database.
_OF_DATABASES = ("src/roost/store/databases/", "src/roost/store/dialect.py")
_CONFIGURATION = "src/roost/configuration/"
_DATABASES = re.compile(r"sqlite|postgres|mysql|mariadb|psycopg", re.IGNORECASE)
_OPTIONS = frozenset({"sqlite_synchronous", "mysql_sql_mode"})
# An import from another server keeps what it has read in a file of its own.
_WORK_FILE = frozenset({"src/roost/moving/survey_file.py", "src/roost/cli/server/moving.py"})


def test_the_code_tells_databases_apart_in_one_place() -> None:
    """A new database is a package in `store/databases`, and its line in `store/dialect.py`."""
    found = [
        f"{_name(path)}: {word}"
        for path in SOURCES
        if not _name(path).startswith((*_OF_DATABASES, _CONFIGURATION))
        if _name(path) not in _WORK_FILE
        for word in _code_words(ast.parse(path.read_text()))
        if _DATABASES.search(word) and word not in _OPTIONS
    ]
    assert found == []


def test_only_the_choice_imports_the_package_of_a_database() -> None:
    found = [
        f"{_name(path)}: {node.module}"
        for path in SOURCES
        if not _name(path).startswith(_OF_DATABASES)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and "store.databases" in (node.module or "")
    ]
    assert found == []


def _code_words(tree: ast.Module) -> Iterator[str]:
    """The names in a module, and its texts that are no sentences, and no examples of URLs."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if not re.search(r"\s|://", node.value):
                yield node.value
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
        else:
            for field in ("id", "attr", "arg", "name", "asname"):
                yield str(getattr(node, field, ""))


def test_every_exception_for_a_tool_has_its_reason_beside_it() -> None:
    bare = [
        f"{_name(path)}:{number}"
        for path in SOURCES
        for number in _exceptions_without_reason(path.read_text().splitlines())
    ]
    assert bare == []


def _exceptions_without_reason(lines: list[str]) -> Iterator[int]:
    above = ""
    for number, line in enumerate(lines, 1):
        exception = re.search(r"# (noqa|type: ignore)[^#]*?(?P<reason>( --|  #) .+)?$", line)
        if exception is None:
            above = line
        # The reason of several exceptions in a row stands above the first.
        elif not exception["reason"] and not above.lstrip().startswith("# "):
            yield number


@pytest.mark.parametrize("room", ROOMS, ids=_name)
def test_sentences_in_the_code_have_a_named_subject(room: Path) -> None:
    remarks = [str(remark) for path in sorted(room.rglob("*.py")) for remark in remarks_on(path)]
    assert not remarks, "\n" + "\n".join(remarks)


def test_waits_of_tests_have_one_deadline() -> None:
    # A number of seconds in a test is right on an idle machine only. `support/waiting.py` has the
    # deadline that all waits share.
    own = re.compile(
        r"(?<!\w)timeout=[1-9]\d*[,)\n]|\.(wait|join|result|settimeout)\([1-9]\d*\)|"
        r"monotonic\(\) \+ [1-9]"
    )
    found = [
        f"{_name(path)}: {deadline[0]}"
        for path in (PROJECT / "tests").rglob("*.py")
        for deadline in own.finditer(path.read_text())
    ]
    assert found == []


def test_a_room_has_a_dozen_modules_at_most() -> None:
    sizes = Counter(_name(path.parent) for path in SOURCES if path.name != "__init__.py")
    assert sizes["src/roost/search/forest"] > 1
    assert {room: size for room, size in sizes.items() if size > MODULES_OF_A_ROOM_MAX} == {}


def test_the_architecture_is_one_page() -> None:
    page = (PROJECT / "ARCHITECTURE.md").read_text()
    assert len(page.encode()) <= ARCHITECTURE_BYTES_MAX
    assert page.partition("## Where to add")[2].count("\n| ") <= 10
    cells = [cell for line in page.splitlines() if line[:1] == "|" for cell in line.split("|")]
    assert max(map(len, cells)) <= 150


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_the_pages_name_modules_that_exist(page: Path) -> None:
    named = set(re.findall(r"`([\w./-]+\.py)`", page.read_text()))
    missing = [
        path for path in sorted(named) if not any(module.endswith(f"/{path}") for module in MODULES)
    ]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_sentences_on_the_pages_have_a_named_subject(page: Path) -> None:
    remarks = [str(remark) for remark in remarks_on(page)]
    assert not remarks, "\n" + "\n".join(remarks)
