"""Loading a driver by name or by class, and the errors of a wrong name."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import pytest

from roost.client.drivers.file import FileDriver
from roost.client.drivers.registry import BUILT_IN, load_driver
from roost.client.errors import NotConfigured

DRIVER = """
class Rack:
    def __init__(self, shelf, *, colour="red"):
        if colour == "none":
            raise ValueError("a rack has a colour")
        self.options = (shelf, colour)

    def update_provider_tree(self, provider_tree, nodename):
        pass

class Anything:
    def __init__(self, **options):
        self.options = options

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
    """Writes modules to a directory on the path, and unloads them at the end."""
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


def options_of(spec: str, **options: str) -> object:
    return vars(load_driver(spec, options))["options"]


def test_a_built_in_driver_is_loaded_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "tree.yaml"
    path.write_text("providers: [{name: a}]")
    driver = load_driver("file", {"path": str(path)})
    assert isinstance(driver, FileDriver)
    assert [provider.name for provider in driver.declare("a").providers] == ["a"]


@pytest.mark.parametrize("name", BUILT_IN)
def test_the_class_of_every_built_in_driver_exists(name: str) -> None:
    module, _, class_name = BUILT_IN[name].partition(":")
    assert hasattr(import_module(module), class_name)


def test_any_driver_is_loaded_by_module_and_class(write: Write) -> None:
    write("own", DRIVER)
    assert options_of("own:Rack", shelf="a") == ("a", "red")
    assert options_of("own:Rack", shelf="a", colour="blue") == ("a", "blue")
    assert options_of("own:Anything", height="2") == {"height": "2"}


def test_a_module_in_the_working_directory_is_not_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lying_around.py").write_text(DRIVER)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place not in ("", ".")])
    assert "PYTHONPATH" in refusal("lying_around:Rack", shelf="a")


@pytest.mark.parametrize("spec", ["lunix", "", "own:", ":Rack", "own.Rack"])
def test_an_error_about_an_unknown_name_lists_the_known_names(spec: str) -> None:
    assert f"{spec!r}: take file, libvirt, linux or package.module:Class" in refusal(spec)


def test_an_error_names_the_module_that_is_missing(write: Write) -> None:
    assert "there is no module nowhere;" in refusal("nowhere.at.all:Rack")
    write("needy", "import something_not_installed")
    assert "needy needs the missing module something_not_installed" in refusal("needy:Rack")


def test_an_error_names_the_exception_of_an_import(write: Write) -> None:
    write("broken", "1 / 0")
    assert "broken cannot be imported; ZeroDivisionError: division by zero" in refusal("broken:A")
    write("unwritten", "class :")
    assert "unwritten cannot be imported; SyntaxError:" in refusal("unwritten:A")
    assert ".own cannot be imported; TypeError" in refusal(".own:A")


def test_an_error_names_a_class_that_is_missing_or_no_driver(write: Write, tmp_path: Path) -> None:
    write("own", DRIVER)
    missing = refusal("own:Rick")
    assert f"there is no class Rick in own ({tmp_path}/own.py)" in missing
    assert "there is no class not_a_class in own" in refusal("own:not_a_class")
    assert "needs a method update_provider_tree or declare" in refusal("own:NoDriver")


def test_an_error_about_wrong_options_lists_the_accepted_options(write: Write) -> None:
    write("own", DRIVER)
    accepted = "it takes shelf (required), colour."
    assert refusal("own:Rack") == f"Driver own:Rack lacks the option shelf; {accepted}"
    assert refusal("own:Rack", shelf="a", size="1").endswith(f"has no option 'size'; {accepted}")
    assert "own:Rack" in (broken := refusal("own:Rack", shelf="a", colour="none"))
    assert "a rack has a colour" in broken
    assert refusal("own:Shelf").endswith("it takes rack (required).")
    assert refusal("file").endswith("it takes path (required).")
