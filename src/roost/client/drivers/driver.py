"""The two kinds of drivers: a `Driver` edits a tree, a `DeclaringDriver` declares the host."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from roost.client.declaration import Declaration
from roost.client.provider_tree import ProviderTree

Allocations = dict[str, dict[str, Any]]
"""Consumer -> the body of `GET /allocations/{consumer}`; a driver that reshapes edits it."""


class Driver(Protocol):
    """A driver with the method that compute services call.

    The driver edits the tree in place. If a change would move inventory that is in use, the
    driver raises `ReshapeNeeded`. The reporter then calls it once more with all `allocations` of
    the tree, and the driver moves these as well. A driver that never reshapes may lack the
    parameter.
    """

    def update_provider_tree(
        self, provider_tree: ProviderTree, nodename: str, allocations: Allocations | None = None
    ) -> None:
        """Make the tree equal to the host."""
        ...


@runtime_checkable
class DeclaringDriver(Protocol):
    """A driver that declares the providers of the host.

    The caller compares the declaration with the server, and decides what of the difference its
    owner may write and remove. A driver that declares the wish of an operator has the attribute
    `declares_intent = True`: what it no longer declares is removed at once.
    """

    def declare(self, nodename: str) -> Declaration:
        """All providers of the host, its root (named `nodename`) first."""
        ...
