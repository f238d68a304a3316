"""docs/provider-tree.md: every public method with its arguments, and the program."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from roost.client.provider_tree.tree import ProviderData, ProviderSubTree, ProviderTree
from support.code_blocks import code_blocks

PAGE = Path(__file__).parents[3] / "docs" / "provider-tree.md"


def _interface() -> Iterator[str]:
    """Each public name of both classes, methods with their arguments."""
    for name, value in (vars(ProviderTree) | vars(ProviderSubTree)).items():
        if name.startswith("_"):
            continue
        yield f"{name}{_arguments(value)}" if inspect.isfunction(value) else name


def _arguments(method: object) -> str:
    assert callable(method)
    _, *parameters = inspect.signature(method).parameters.values()
    plain = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in parameters]
    return str(inspect.Signature(plain))


def test_the_tables_have_every_public_name_once_and_no_other() -> None:
    described = PAGE.read_text().partition("## Differences")[0]
    assert sorted(re.findall(r"^\| `([^`]+)` \|", described, re.MULTILINE)) == sorted(_interface())


def test_the_page_has_the_fields_of_a_snapshot_in_their_order() -> None:
    assert ", ".join(f"`{field}`" for field in ProviderData._fields) in PAGE.read_text()


def test_the_program_runs(capsys: pytest.CaptureFixture[str]) -> None:
    program, _ = code_blocks(PAGE, "python")
    exec(program.text, {})
    assert capsys.readouterr().out == "{'VGPU': {'total': 8}} True\n"
