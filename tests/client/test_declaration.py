"""The trees of a declaration."""

from __future__ import annotations

from roost.client.declaration import Declaration, DeclaredProvider


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
