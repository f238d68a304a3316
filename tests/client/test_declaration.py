"""The trees of a declaration."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from roost.model.trees.declaration import Declaration, DeclaredProvider

HOST = DeclaredProvider("host")
CARD = DeclaredProvider("host_card", "host")
OF_NUMBERS: Any = {"VCPU": 16}
TEXT: Any = "CUSTOM_GOLD"


def test_a_declaration_is_divided_into_trees_in_their_order() -> None:
    a, b = DeclaredProvider("a"), DeclaredProvider("b")
    below_a = [
        DeclaredProvider("a1", "a"),
        DeclaredProvider("a2", "a"),
        DeclaredProvider("x", "a1"),
    ]
    below_b = [DeclaredProvider("b1", "b")]
    mixed = Declaration((b, a, below_a[0], below_b[0], below_a[1], below_a[2]))
    assert mixed.trees() == {"b": Declaration((b, *below_b)), "a": Declaration((a, *below_a))}
    assert list(mixed.trees()) == ["b", "a"]
    assert Declaration(()).trees() == {}


def test_uuids_of_a_declaration_have_the_spelling_of_the_server() -> None:
    uuid, aggregate = "C0FFEE00-0000-0000-0000-000000000001", "C0FFEE00000000000000000000000002"
    declared = DeclaredProvider("host", uuid=uuid, aggregates=frozenset({aggregate, "no uuid"}))
    assert declared.uuid == uuid.lower()
    assert declared.aggregates == {"c0ffee00-0000-0000-0000-000000000002", "no uuid"}


@pytest.mark.parametrize(
    ("declare", "words"),
    [
        (lambda: DeclaredProvider(""), "the name ''"),
        (lambda: DeclaredProvider("host", inventories=OF_NUMBERS), "inventory VCPU of host is 16"),
        (lambda: DeclaredProvider("host", traits=TEXT), "traits of host are 'CUSTOM_GOLD'"),
        (lambda: Declaration((HOST, HOST)), "host is declared twice"),
        (lambda: Declaration((CARD, HOST)), "declare parents before their children"),
        (lambda: Declaration((HOST, DeclaredProvider("x", "hots"))), "x has the parent hots"),
    ],
)
def test_a_declaration_that_cannot_be_made_true_is_refused_where_the_driver_makes_it(
    declare: Callable[[], object], words: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        declare()


def test_traits_may_be_given_as_a_list() -> None:
    names: Any = ["CUSTOM_GOLD"]
    assert DeclaredProvider("host", traits=names).traits == frozenset({"CUSTOM_GOLD"})
