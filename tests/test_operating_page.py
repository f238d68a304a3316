"""The page for operators names every option of Roost that they can choose."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from roost.configuration.options import GROUPS
from roost.model.limits import Limits

PAGE = (Path(__file__).parents[1] / "docs" / "operating.md").read_text()


@pytest.mark.parametrize("name", [option.name for option in GROUPS["roost"]])
def test_the_page_has_a_row_for_every_option(name: str) -> None:
    assert f"| `{name}` |" in PAGE


def test_every_limit_is_an_option() -> None:
    assert {field.name for field in fields(Limits)} <= {option.name for option in GROUPS["roost"]}
