"""The router: fixed and variable paths beside each other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from roost.api.handlers import root
from roost.api.routing import Router


def router(*paths: str) -> Router:
    return Router([replace(root.ROUTES[0], path=path) for path in paths])


def test_a_fixed_path_is_found_before_a_variable_one() -> None:
    found = router("/roost/{name}", "/roost/state")
    for path, template, parameters in (
        ("/roost/state", "/roost/state", {}),
        ("/roost/other", "/roost/{name}", {"name": "other"}),
    ):
        match = found.find(path)
        assert match is not None
        assert (match.path, match.parameters) == (template, parameters)


def test_the_more_fixed_path_is_found_first_whatever_the_order_of_the_table() -> None:
    paths = ["/a/{x}/{y}", "/a/b/{y}", "/a/{x}/c"]
    for order in (paths, paths[::-1]):
        match = router(*order).find("/a/b/z")
        assert match is not None
        assert match.path == "/a/b/{y}"
        match = router(*order).find("/a/z/c")
        assert match is not None
        assert match.path == "/a/{x}/c"


@pytest.mark.parametrize("value", ["{}", "{name}"])
def test_braces_are_a_value_like_any(value: str) -> None:
    match = router("/roost/{name}").find(f"/roost/{value}")
    assert match is not None
    assert match.parameters == {"name": value}


def test_an_empty_part_is_no_value() -> None:
    assert router("/roost/{name}", "/roost/state").find("/roost/") is None


def test_one_path_with_two_names_of_its_part_is_refused() -> None:
    with pytest.raises(ValueError, match="other names"):
        router("/roost/{name}", "/roost/{uuid}")
