"""What a driver says of its host, without a server."""

from __future__ import annotations

from dataclasses import replace

from roost.client.declaration import Declaration, DeclaredProvider
from roost.client.drivers.calls import asks_for_reshape, calling, declared_by
from roost.client.drivers.driver import DeclaringDriver, Driver
from roost.client.inspection import InspectedTree, declaration_in
from roost.client.provider_tree import ProviderTree
from roost.model.identifiers import new_uuid
from roost.model.inventory import DEFAULTS


def declared_offline(
    driver: Driver | DeclaringDriver, name: str, uuid: str | None = None
) -> Declaration:
    """The host as the driver declares it, or as it edits the tree of a host without children."""
    if isinstance(driver, DeclaringDriver):
        return _with_root_uuid(declared_by(driver, name), name, uuid)
    root_uuid = uuid or new_uuid()
    tree = _new_host(name, root_uuid)
    try:
        with calling(driver):
            driver.update_provider_tree(tree, name)
    except Exception as error:
        if not asks_for_reshape(error):
            raise
        tree = _new_host(name, root_uuid)
        # A driver that has the allocations may not ask for them again.
        with calling(driver, may_reshape=False):
            driver.update_provider_tree(tree, name, allocations={})
    return _without_uuids(declaration_in(tree, root_uuid), name, uuid)


def declared_tree(declaration: Declaration, root: DeclaredProvider) -> InspectedTree:
    """One tree of a declaration, with the defaults of inventories and without usage.

    A provider without a declared uuid has a random one in it.
    """
    tree = ProviderTree()
    root_uuid = root.uuid or new_uuid()
    for provider in declaration.trees()[root.name].providers:
        if provider.parent is None:
            tree.new_root(provider.name, root_uuid)
        else:
            tree.new_child(provider.name, provider.parent, provider.uuid or new_uuid())
        inventories = {
            resource_class: {**DEFAULTS, **fields}
            for resource_class, fields in provider.inventories.items()
        }
        tree.update_inventory(provider.name, inventories)
        tree.update_traits(provider.name, provider.traits)
        tree.update_aggregates(provider.name, provider.aggregates)
    return InspectedTree(root_uuid, tree, {})


def _new_host(name: str, uuid: str) -> ProviderTree:
    tree = ProviderTree()
    tree.new_root(name, uuid)
    return tree


def _with_root_uuid(declaration: Declaration, name: str, uuid: str | None) -> Declaration:
    """The declaration with the given uuid of the host."""
    providers = tuple(
        replace(provider, uuid=uuid or provider.uuid) if provider.name == name else provider
        for provider in declaration.providers
    )
    return replace(declaration, providers=providers)


def _without_uuids(declaration: Declaration, name: str, uuid: str | None) -> Declaration:
    """The declaration without the random uuids of new providers."""
    providers = tuple(
        replace(provider, uuid=uuid if provider.name == name else None)
        for provider in declaration.providers
    )
    return replace(declaration, providers=providers)
