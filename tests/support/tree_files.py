"""Tree files as tests write them: what they declare, or what is wrong with them."""

from __future__ import annotations

import pytest

from roost.client.declaration import DeclaredProvider
from roost.client.tree_file import TreeFile, TreeFileError, parse_tree_file


def parse(text: str) -> TreeFile:
    return parse_tree_file(text, "tree.yaml")


def declared(text: str) -> dict[str, DeclaredProvider]:
    return {provider.name: provider for provider in parse(text).declaration.providers}


def problems(text: str) -> list[str]:
    """What a file is refused with, which is a line for each."""
    with pytest.raises(TreeFileError) as caught:
        parse(text)
    assert str(caught.value).split("\n") == list(caught.value.problems)
    return list(caught.value.problems)


def problem(text: str) -> str:
    """The one thing that is wrong with a file."""
    (only,) = problems(text)
    return only
