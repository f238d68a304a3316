"""What a driver is: a method that brings a tree up to date, or a description of what is there."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from roost.client.declaration import Declaration
from roost.client.provider_tree import ProviderTree

Allocations = dict[str, dict[str, Any]]
"""Consumer -> what `GET /allocations/{consumer}` says of it; a reshaping driver edits it."""


class Driver(Protocol):
    """Anything that has the method which compute services know.

    It edits the tree in place. If a change would move inventory that is in use it raises
    `ReshapeNeeded`; it is then called with `allocations=` and moves these as well.
    """

    def update_provider_tree(self, provider_tree: ProviderTree, nodename: str) -> None:
        """Make the tree what the host is."""
        ...


@runtime_checkable
class DeclaringDriver(Protocol):
    """A driver that says what there is; who owns what is not its concern.

    The difference to what the server has, and what of it this writer may remove, is worked out
    by whoever runs the driver.
    """

    def declare(self, nodename: str) -> Declaration:
        """All providers of the host, its root (named `nodename`) first."""
        ...
