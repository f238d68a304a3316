"""Errors in the code of a driver."""

from __future__ import annotations

from typing import Any

import pytest

from roost.client.drivers.driver import calling, declared_by
from roost.client.errors import DeclarationRefused, DriverFailed, ReshapeNeeded, SuddenLoss
from roost.model.trees.declaration import Declaration, DeclaredProvider


class Returning:
    """A driver that returns what the test gives it."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def declare(self, nodename: str) -> Declaration:
        declaration: Declaration = self.value
        return declaration


def test_an_error_names_the_driver_and_the_line_that_declares() -> None:
    class Careless:
        def declare(self, nodename: str) -> Declaration:
            inventories: Any = {"VCPU": 16}
            return Declaration((DeclaredProvider(nodename, inventories=inventories),))

    with pytest.raises(DriverFailed) as failure:
        declared_by(Careless(), "host")
    assert "Careless failed with ValueError: inventory VCPU of host is 16" in str(failure.value)
    assert f"({__file__}, line " in str(failure.value)
    assert str(failure.value).endswith(", in declare)")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "returns None instead of a Declaration"),
        (Declaration((DeclaredProvider("other"),)), "declares no root host"),
    ],
)
def test_an_error_says_what_the_driver_has_to_return(value: object, words: str) -> None:
    with pytest.raises(DeclarationRefused) as failure:
        declared_by(Returning(value), "host")
    assert words in str(failure.value)


class NovasError(Exception):
    """Stands for a base class of Nova."""


@pytest.mark.parametrize(
    "error", [ReshapeNeeded(), type("ReshapeNeeded", (NovasError,), {})(), SuddenLoss("half")]
)
def test_a_reshape_and_an_error_for_the_operator_stay_as_they_are(error: Exception) -> None:
    with pytest.raises(type(error)) as raised, calling(object()):
        raise error
    assert raised.value is error
