"""The shape of a tree: declared providers are found in it, added to it, or moved. Pure."""

from __future__ import annotations

import copy
from collections.abc import Mapping

from roost.client.declaration import Declaration, DeclaredProvider
from roost.client.errors import DeclarationRefused
from roost.client.ownership.child_uuids import child_uuid
from roost.client.ownership.owner_names import is_owner_trait
from roost.client.ownership.record import OwnershipRecord
from roost.client.provider_tree import ProviderData, ProviderTree
from roost.model.identifiers import new_uuid


def found_providers(
    tree: ProviderTree, declaration: Declaration, record: OwnershipRecord, owner_trait: str
) -> Mapping[str, str]:
    """The uuids of the declared providers that the tree has, by declared name.

    A provider that an operator has renamed is one of them. The tree stays as it is.
    """
    shape = TreeShape(copy.deepcopy(tree), record, owner_trait, may_move=False)
    uuids = {provider.name: shape.find_or_add(provider) for provider in declaration.providers}
    return {name: uuid for name, uuid in uuids.items() if tree.exists(uuid)}


class TreeShape:
    """Brings declared providers into a tree, parents before their children.

    `kept` gets a line for each provider that cannot have its declared name or parent.
    """

    def __init__(
        self, tree: ProviderTree, record: OwnershipRecord, owner_trait: str, *, may_move: bool
    ) -> None:
        self._tree = tree
        self._record = record
        self._owner_trait = owner_trait
        self._may_move = may_move
        self.kept: list[str] = []
        # The uuid of each declared provider, and of the declared root above it, by its name.
        self._uuids: dict[str, str] = {}
        self._root_uuids: dict[str, str] = {}
        # An earlier request to create these providers may still be on its way to the server.
        self._uuids_on_the_way = {
            owned.name: uuid
            for uuid, owned in record.providers.items()
            if owned.created and not tree.exists(uuid)
        }

    def find_or_add(self, provider: DeclaredProvider) -> str:
        """The uuid of a declared provider, which is added to the tree if it is missing."""
        self._check_traits(provider)
        found = self._find(provider)
        uuid = self._add(provider) if found is None else self._placed(provider, found)
        self._uuids[provider.name] = uuid
        self._root_uuids[provider.name] = self._root_uuids.get(provider.parent or "", uuid)
        return uuid

    def _find(self, provider: DeclaredProvider) -> ProviderData | None:
        """The declared provider in the tree; `None` if the tree does not have it."""
        address = provider.uuid or provider.name
        if self._tree.exists(address):
            found = self._tree.data(address)
            if found.name == provider.name:
                return found
            raise DeclarationRefused(
                f"Provider {found.uuid} is declared as {provider.name}, but is named {found.name}; "
                "providers are not renamed: declare the name that it has"
            )
        if self._tree.exists(provider.name):
            named = self._tree.data(provider.name).uuid
            raise DeclarationRefused(
                f"Provider {provider.name} is declared with uuid {provider.uuid}, but has {named}: "
                "declare that uuid, or none"
            )
        return self._renamed(provider)

    def _renamed(self, provider: DeclaredProvider) -> ProviderData | None:
        """The provider that the owner created under the declared name, and that has another now."""
        uuid = self._new_uuid(provider)
        if not self._tree.exists(uuid):
            return None
        found = self._tree.data(uuid)
        self.kept.append(f"{found.name}: keeps this name, though declared as {provider.name}")
        return found

    def _new_uuid(self, provider: DeclaredProvider) -> str:
        """The uuid that a declared provider gets if it is created."""
        known = provider.uuid or self._uuids_on_the_way.get(provider.name)
        if known is not None:
            return known
        if provider.parent is None:
            return new_uuid()
        return child_uuid(self._root_uuids[provider.parent], self._owner_trait, provider.name)

    def _add(self, provider: DeclaredProvider) -> str:
        uuid = self._new_uuid(provider)
        if provider.parent is None:
            return self._tree.new_root(provider.name, uuid)
        return self._tree.new_child(provider.name, self._uuids[provider.parent], uuid)

    def _check_traits(self, provider: DeclaredProvider) -> None:
        for trait in provider.traits:
            if is_owner_trait(trait) and trait != self._owner_trait:
                raise DeclarationRefused(
                    f"Provider {provider.name} is declared with {trait}, the trait of another "
                    "owner: leave the trait out, or write as that owner"
                )

    def _placed(self, provider: DeclaredProvider, found: ProviderData) -> str:
        """The uuid of a found provider, which is moved below its declared parent if need be."""
        if provider.parent is None or self._uuids[provider.parent] == found.parent_uuid:
            return found.uuid
        obstacle = self._obstacle_to_move(found, self._uuids[provider.parent])
        if not obstacle:
            self._tree.move(found.uuid, self._uuids[provider.parent])
            return found.uuid
        place = (
            f"below {self._tree.data(found.parent_uuid).name}" if found.parent_uuid else "a root"
        )
        self.kept.append(
            f"{found.name}: stays {place}, though declared below {provider.parent}; {obstacle}"
        )
        return found.uuid

    def _obstacle_to_move(self, found: ProviderData, parent_uuid: str) -> str:
        """Why a provider must not be moved; empty if it may be."""
        if found.parent_uuid is None:
            return "roots are not moved"
        if not self._record.provider(found.uuid, found.name).created:
            return "another writer created it"
        if not self._may_move:
            return "the server is older than 1.37 and moves no providers"
        if parent_uuid in self._tree.get_provider_uuids(found.uuid):
            return "that provider is below it"
        return ""
