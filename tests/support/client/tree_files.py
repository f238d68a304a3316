"""Parsing of tree files: their declarations, or their problems."""

from __future__ import annotations

import pytest

from roost.client.tree_file import TreeFile, TreeFileError, parse_tree_file
from roost.model.trees.declaration import DeclaredProvider


def parse(text: str) -> TreeFile:
    return parse_tree_file(text, "tree.yaml")


def declared(text: str) -> dict[str, DeclaredProvider]:
    return {provider.name: provider for provider in parse(text).declaration.providers}


def problems(text: str) -> list[str]:
    """The problems of a refused file. The error text has one line for each problem."""
    with pytest.raises(TreeFileError) as caught:
        parse(text)
    assert str(caught.value).split("\n") == list(caught.value.problems)
    return list(caught.value.problems)


def problem(text: str) -> str:
    """The only problem of a refused file."""
    (only,) = problems(text)
    return only
