"""What a driver declares is checked before anything is written."""

from __future__ import annotations

from typing import Any

import pytest

from roost.client.drivers.driver import checked_declaration
from roost.client.errors import DeclarationRefused
from roost.model.trees.declaration import Declaration, DeclaredProvider

HOST = DeclaredProvider("host")


def below(name: Any, parent: Any = "host", **fields: Any) -> Declaration:
    return Declaration((HOST, DeclaredProvider(name, parent, **fields)))


@pytest.mark.parametrize(
    "declared",
    [
        Declaration(()),
        Declaration((HOST,)),
        below("host_card", inventories={"VCPU": {"total": 8, "allocation_ratio": 1.5}}),
        below("Gehäuse", traits=frozenset({"CUSTOM_GOLD"})),
    ],
)
def test_a_host_passes(declared: Declaration) -> None:
    assert checked_declaration(declared, "host") is declared


@pytest.mark.parametrize(
    ("declared", "problem"),
    [
        (None, "returns None instead of a Declaration"),
        ([HOST], "returns a list instead"),
        (Declaration((DeclaredProvider("other"),)), "declares no root host"),
        (below("x" * 201), "1 to 200 characters"),
        (below("card\udc80"), "name is no text"),
        (below("a", uuid="7"), "whose uuid is '7'"),
        (below("a", uuid=7), "whose uuid is 7"),
        (below("a", traits=frozenset({5})), "whose traits are not all texts"),
        (below("a", inventories={"VCPU": {"reserved": 8}}), "whose VCPU is"),
        (below("a", inventories={5: {"total": 8}}), "resource class 5"),
        (below("a", inventories={"VCPU": {"total": "8"}}), "total '8', which is no number"),
        (below("a", inventories={"VCPU": {"total": True}}), "total True"),
        (
            below("a", inventories={"VCPU": {"total": 8, "allocation_ratio": float("nan")}}),
            "allocation_ratio nan",
        ),
    ],
)
def test_a_declaration_of_no_host_is_refused_with_a_sentence(declared: Any, problem: str) -> None:
    with pytest.raises(DeclarationRefused, match=r"^The driver ") as caught:
        checked_declaration(declared, "host")
    assert problem in str(caught.value)
