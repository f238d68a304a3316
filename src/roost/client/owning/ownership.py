"""Several writers, one tree: which part of it is whose.

A writer owns what it put there: a provider that it created, an inventory, a trait or an aggregate
that was not there, or not like this, when it declared it. What others put there is theirs, even
if the writer declares the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from roost.client.declaration import Declaration, DeclaredProvider
from roost.client.errors import NotConfigured
from roost.client.provider_tree import ProviderData, ProviderTree


@dataclass(frozen=True, slots=True)
class OwnedProvider:
    """What a writer owns of one provider; of one that it `created`, the provider as well.

    Of an inventory it owns the fields that it declared: resource class -> names of fields.
    """

    name: str
    created: bool = False
    inventories: Mapping[str, frozenset[str]] = field(default_factory=dict)
    traits: frozenset[str] = frozenset()
    aggregates: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.created or self.inventories or self.traits or self.aggregates)


@dataclass(frozen=True, slots=True)
class Owned:
    """What a writer owns of one tree, by the uuid of the provider."""

    providers: Mapping[str, OwnedProvider] = field(default_factory=dict)

    def of(self, uuid: str, name: str) -> OwnedProvider:
        """What is owned of a provider; nothing, if it is not known."""
        return self.providers.get(uuid, OwnedProvider(name))


def owner_name(text: str) -> str:
    """The name of an owner in the one spelling that it has everywhere.

    Its trait can tell neither case nor punctuation, so the name does not either.

    >>> owner_name("Rack_Agent.7")
    'rack-agent-7'
    """
    name = re.sub(r"[_.]", "-", text.lower())
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,99}", name):
        raise NotConfigured(
            f"{text!r} cannot be an owner: use up to 100 letters, digits, '_', '.' and '-'"
        )
    return name


def is_owner_trait(trait: str) -> bool:
    """Whether a trait is the mark of some owner."""
    return trait.startswith(("OWNER_", "CUSTOM_OWNER_"))


def owner_trait(owner: str, standard_traits: Iterable[str]) -> str:
    """The trait that marks the providers which this owner created.

    >>> owner_trait("nova", ["OWNER_NOVA"]), owner_trait("rack-agent", ["OWNER_NOVA"])
    ('OWNER_NOVA', 'CUSTOM_OWNER_RACK_AGENT')
    """
    name = "OWNER_" + owner_name(owner).upper().replace("-", "_")
    return name if name in standard_traits else f"CUSTOM_{name}"


def recovered(tree: ProviderTree, root_uuid: str, declaration: Declaration, mark: str) -> Owned:
    """What a writer without memory may take for its own: what it declares on its own providers.

    Its own providers are those of the tree that have its mark. What else is on them may be
    anybody's. What shares with the tree is in a tree of its own, and no business of this one.
    """
    declared = {provider.uuid or provider.name: provider for provider in declaration.providers}
    owned = {}
    for provider in _marked(tree, root_uuid, mark):
        wanted = declared.get(provider.uuid) or declared.get(provider.name)
        wanted = wanted or DeclaredProvider(provider.name)
        owned[provider.uuid] = OwnedProvider(
            provider.name,
            created=True,
            inventories={
                name: frozenset(fields)
                for name, fields in wanted.inventories.items()
                if name in provider.inventory
            },
            traits=frozenset(provider.traits & (wanted.traits | {mark})),
            aggregates=frozenset(provider.aggregates & wanted.aggregates),
        )
    return Owned(owned)


def adopted(
    tree: ProviderTree, root_uuid: str, declaration: Declaration, mark: str, owned: Owned
) -> Owned:
    """What is owned, and all that is on the declared and on the marked providers."""
    providers = dict(owned.providers)
    addresses = (provider.uuid or provider.name for provider in declaration.providers)
    declared = [tree.data(address) for address in addresses if tree.exists(address)]
    for provider in (*declared, *_marked(tree, root_uuid, mark)):
        created = mark in provider.traits or owned.of(provider.uuid, provider.name).created
        providers[provider.uuid] = _everything(provider, created)
    return Owned(providers)


def _marked(tree: ProviderTree, root_uuid: str, mark: str) -> Iterator[ProviderData]:
    for uuid in tree.get_provider_uuids_in_tree(root_uuid):
        provider = tree.data(uuid)
        if mark in provider.traits:
            yield provider


def _everything(provider: ProviderData, created: bool) -> OwnedProvider:
    return OwnedProvider(
        provider.name,
        created,
        {name: frozenset(fields) for name, fields in provider.inventory.items()},
        frozenset(provider.traits),
        frozenset(provider.aggregates),
    )
