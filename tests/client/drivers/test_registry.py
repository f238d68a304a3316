"""Drivers that packages register under `roost.drivers`, and `roost driver`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest

from roost.cli.driver import show
from roost.client.drivers.linux import LinuxDriver
from roost.client.drivers.registry import load_driver
from roost.client.errors import NotConfigured
from support.roost_command import roost

MODULE = '''
from typing import Annotated

class Rack:
    """Describes a rack."""

    def __init__(self, shelf: str, cards: Annotated[int, "Number of cards."] = 2):
        self.cards = cards

    def declare(self, nodename):
        pass
'''

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Installs a package with entry points into a directory on the path."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "rack_of_tests.py").write_text(MODULE)

    def write(package: str, **drivers: str) -> None:
        information = tmp_path / f"{package}-1.2.dist-info"
        information.mkdir()
        (information / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.2\n"
        )
        lines = [f"{name} = {location}" for name, location in drivers.items()]
        (information / "entry_points.txt").write_text("\n".join(["[roost.drivers]", *lines]))

    yield write
    sys.modules.pop("rack_of_tests", None)


def refusal(spec: str) -> str:
    with pytest.raises(NotConfigured) as caught:
        load_driver(spec, {"shelf": "a"})
    return str(caught.value)


def test_a_registered_driver_is_loaded_by_its_name(install: Install) -> None:
    install("rack-package", rack="rack_of_tests:Rack")
    assert vars(load_driver("rack", {"shelf": "a", "cards": "3"})) == {"cards": 3}


def test_an_unknown_name_gets_near_names(install: Install) -> None:
    install("rack-package", rack="rack_of_tests:Rack")
    assert "take file, libvirt, linux, rack or package.module:Class" in refusal("rakc")
    assert "Near it: rack" in refusal("rakc")


def test_a_name_of_two_packages_is_an_error_that_names_both(install: Install) -> None:
    install("one", rack="rack_of_tests:Rack")
    install("two", rack="elsewhere:Rack")
    text = refusal("rack")
    assert "one 1.2 (rack_of_tests:Rack) and two 1.2 (elsewhere:Rack)" in text
    assert "--driver rack_of_tests:Rack" in text


def test_a_driver_of_roost_keeps_its_name(install: Install) -> None:
    install("thief", file="rack_of_tests:Rack")
    assert type(load_driver("file", {"path": "/x"})).__name__ == "FileDriver"
    lines = roost("driver", "list").out.splitlines()
    (thief,) = [line for line in lines if "thief" in line]
    assert "not used: a driver of Roost has this name" in thief
    assert all("not used" not in line for line in lines if line != thief)


def test_a_broken_registration_is_an_error_that_says_what_is_wrong(install: Install) -> None:
    install(
        "broken",
        nowhere="missing_module:Rack",
        module="rack_of_tests",
        classless="rack_of_tests:Rock",
    )
    assert "there is no module missing_module" in refusal("nowhere")
    assert "names no class" in refusal("module")
    assert "there is no class Rock in rack_of_tests" in refusal("classless")


def test_the_list_names_all_drivers_without_importing_them(install: Install) -> None:
    install("rack-package", rack="rack_of_tests:Rack", broken="missing_module:Rack")
    listed = {row["driver"]: row for row in json.loads(roost("driver", "list", "--json").out)}
    assert listed.keys() == {"broken", "file", "libvirt", "linux", "rack"}
    assert listed["rack"]["from"] == "rack-package 1.2"
    assert listed["rack"]["class"] == "rack_of_tests:Rack"
    assert listed["linux"]["from"].startswith("roost ")
    assert "rack_of_tests" not in sys.modules


def test_the_options_of_a_driver_are_shown_with_type_default_and_help(install: Install) -> None:
    install("rack-package", rack="rack_of_tests:Rack")
    text = roost("driver", "show", "rack").out
    assert text.startswith("Describes a rack.\n")
    shown = json.loads(roost("driver", "show", "rack", "--json").out)
    assert shown["options"] == [
        {"option": "shelf", "takes": "text", "default": "(required)", "help": ""},
        {"option": "cards", "takes": "a whole number", "default": "2", "help": "Number of cards."},
    ]
    assert "Near it: rack" in roost("driver", "show", "rock").err


@pytest.mark.parametrize("name", ["linux", "libvirt", "file"])
def test_each_option_of_a_built_in_driver_has_help(name: str) -> None:
    options = json.loads(roost("driver", "show", name, "--json").out)["options"]
    assert options
    assert all(option["help"].endswith(".") for option in options)
    assert "a value that the driver checks" not in {option["takes"] for option in options}


def test_the_defaults_that_are_shown_are_those_in_force() -> None:
    options = json.loads(roost("driver", "show", "linux", "--json").out)["options"]
    shown = {option["option"]: option["default"] for option in options if option["default"]}
    names = {"reserved_memory_mb", "reserved_cpus", "disks", "pci", "offer", "root", "sysfs"}
    assert shown.keys() == names
    assert load_driver("linux", shown) == LinuxDriver()


def test_the_shell_completes_the_names_of_drivers(install: Install) -> None:
    install("rack-package", linux_rack="rack_of_tests:Rack")
    argument = show.params[0]
    found = argument.shell_complete(click.Context(show), "li")
    assert [item.value for item in found] == ["libvirt", "linux", "linux_rack"]
