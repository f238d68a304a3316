"""No version of a dependency that has a known hole can be installed with Roost."""

from __future__ import annotations

import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
REQUIREMENTS = {
    requirement.name: requirement
    for group in (PROJECT["dependencies"], *PROJECT["optional-dependencies"].values())
    for requirement in map(Requirement, group)
}


@pytest.mark.parametrize(
    ("name", "last_with_hole"),
    [
        ("click", "8.3.2"),
        ("keystonemiddleware", "12.0.0"),
        ("orjson", "3.11.5"),
        ("pymysql", "1.1.0"),
        ("pytest", "9.0.2"),
        ("urllib3", "2.7.0"),
        ("webob", "1.8.7"),
    ],
)
def test_versions_with_known_holes_are_not_admitted(name: str, last_with_hole: str) -> None:
    assert not REQUIREMENTS[name].specifier.contains(last_with_hole)


@pytest.mark.parametrize("name", sorted(REQUIREMENTS.keys() - {"roost", "libvirt-python"}))
def test_the_installed_version_is_admitted(name: str) -> None:
    assert REQUIREMENTS[name].specifier.contains(metadata.version(name))
