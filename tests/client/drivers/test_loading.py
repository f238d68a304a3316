"""From the name of a driver to the driver, or to a sentence that helps."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import pytest

from roost.client.drivers.file import FileDriver
from roost.client.drivers.loading import BUILT_IN, load_driver
from roost.client.errors import NotConfigured

DRIVER = """
class Rack:
    def __init__(self, shelf, *, colour="red"):
        if colour == "none":
            raise ValueError("a rack has a colour")
        self.told = (shelf, colour)

    def update_provider_tree(self, provider_tree, nodename):
        pass

class Anything:
    def __init__(self, **options):
        self.told = options

    def declare(self, nodename):
        pass

class Shelf(Anything):
    def __init__(self, rack, **options):
        pass

class NoDriver:
    pass

not_a_class = Rack("a")
"""

Write = Callable[[str, str], None]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Writes modules to a place where Python finds them, and forgets them afterwards."""
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)

    def write_module(name: str, text: str) -> None:
        (tmp_path / f"{name}.py").write_text(text)

    yield write_module
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


def refusal(spec: str, **options: str) -> str:
    with pytest.raises(NotConfigured) as caught:
        load_driver(spec, options)
    return str(caught.value)


def told(spec: str, **options: str) -> object:
    return vars(load_driver(spec, options))["told"]


def test_a_built_in_driver_is_known_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "tree.yaml"
    path.write_text("providers: [{name: a}]")
    driver = load_driver("file", {"path": str(path)})
    assert isinstance(driver, FileDriver)
    assert [provider.name for provider in driver.declare("a").providers] == ["a"]


@pytest.mark.parametrize("name", BUILT_IN)
def test_every_built_in_driver_is_where_the_table_says(name: str) -> None:
    module, _, class_name = BUILT_IN[name].partition(":")
    assert hasattr(import_module(module), class_name)


def test_a_driver_of_ones_own_is_named_by_module_and_class(write: Write) -> None:
    write("own", DRIVER)
    assert told("own:Rack", shelf="a") == ("a", "red")
    assert told("own:Rack", shelf="a", colour="blue") == ("a", "blue")
    assert told("own:Anything", height="2") == {"height": "2"}


def test_what_lies_in_the_current_directory_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lying_around.py").write_text(DRIVER)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place not in ("", ".")])
    assert "PYTHONPATH" in refusal("lying_around:Rack", shelf="a")


@pytest.mark.parametrize("spec", ["lunix", "", "own:", ":Rack", "own.Rack"])
def test_an_unknown_name_is_answered_with_the_known_ones(spec: str) -> None:
    assert refusal(spec) == (
        f"There is no driver {spec!r}: take file, libvirt, linux or package.module:Class."
    )


def test_a_module_that_is_missing_is_told_from_one_that_it_needs(write: Write) -> None:
    assert "there is no module nowhere;" in refusal("nowhere.at.all:Rack")
    write("needy", "import something_not_installed")
    told = refusal("needy:Rack")
    assert "needy is there, but needs the module something_not_installed, which is not" in told


def test_a_module_that_breaks_says_how(write: Write) -> None:
    write("broken", "1 / 0")
    assert "broken cannot be imported; ZeroDivisionError: division by zero" in refusal("broken:A")
    write("unwritten", "class :")
    assert "unwritten cannot be imported; SyntaxError:" in refusal("unwritten:A")
    assert ".own cannot be imported; TypeError" in refusal(".own:A")


def test_a_class_must_be_there_and_be_a_driver(write: Write, tmp_path: Path) -> None:
    write("own", DRIVER)
    missing = refusal("own:Rick")
    assert f"there is no class Rick in own ({tmp_path}/own.py)" in missing
    assert "there is no class not_a_class in own" in refusal("own:not_a_class")
    assert "needs a method update_provider_tree or declare" in refusal("own:NoDriver")


def test_wrong_options_are_answered_with_the_right_ones(write: Write) -> None:
    write("own", DRIVER)
    accepted = "it takes shelf (required), colour."
    assert refusal("own:Rack").endswith(f"missing a required argument: 'shelf'; {accepted}")
    assert refusal("own:Rack", shelf="a", size="1").endswith(f"argument 'size'; {accepted}")
    assert refusal("own:Rack", shelf="a", colour="none") == (
        "Driver own:Rack cannot be made: a rack has a colour."
    )
    assert refusal("own:Shelf").endswith("it takes rack (required).")
    assert refusal("file").endswith("it takes path (required).")
