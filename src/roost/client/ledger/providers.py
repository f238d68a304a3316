"""Providers, trees and aggregates of a ledger: reads them, and writes one provider at a time.

A write that names a provider reads its generation, and tries again if another writer changes the
provider meanwhile. A write that has a `ResourceProvider` replaces exactly what the caller has
read: `ResourceProviderUpdateConflict` if the provider has changed since.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from roost.client.claims.allocation_writer import RETRIES
from roost.client.errors import (
    NoSuchProvider,
    ProviderExists,
    ResourceProviderUpdateConflict,
    WriteLost,
)
from roost.client.ledger.ledger_server import LedgerServer
from roost.client.ledger.values import (
    AnyInventory,
    AnyProvider,
    ProviderReference,
    ResourceProvider,
    ResourceTree,
    inventory_fields,
    provider_value,
    tree_value,
)
from roost.client.outcome import finding_out
from roost.client.placement import ProviderBody
from roost.client.reading.cloud_reader import ASSOCIATIONS, Facet
from roost.client.reading.lookup import find_provider
from roost.client.reporting.host_cache import KnownNames
from roost.model.identifiers import canonical_uuid, new_uuid

_FACETS = (*ASSOCIATIONS, Facet.USAGES)


class ProviderLedger(LedgerServer):
    """The providers of a server."""

    # -- reading

    def provider(self, provider: AnyProvider) -> ResourceProvider:
        """A provider with all that it has; `NoSuchProvider` if there is none."""
        named = provider if isinstance(provider, str) else provider.uuid
        return self._read(find_provider(self._server, named))

    def providers(
        self,
        *,
        name: str | None = None,
        in_tree: AnyProvider | None = None,
        required: Collection[str] = (),
        member_of: Collection[str] = (),
        resources: Mapping[str, int] | None = None,
    ) -> Iterator[ResourceProvider]:
        """The providers that meet all conditions, each read as the caller takes it.

        They have all `required` traits, are in one of the aggregates of `member_of`, and have room
        for the `resources`. A provider that another client deletes meanwhile is left out.
        """
        amounts = ",".join(f"{one}:{amount}" for one, amount in (resources or {}).items())
        conditions = {
            "name": name,
            "in_tree": None if in_tree is None else self._uuid(in_tree),
            "required": ",".join(required),
            "member_of": f"in:{','.join(member_of)}" if member_of else None,
            "resources": amounts,
        }
        query = [(key, value) for key, value in conditions.items() if value]
        return self._listed(self._server.matching_providers(query))

    def tree(self, provider: AnyProvider) -> ResourceTree:
        """The whole tree of a provider, with the sharing providers that lend to it."""
        root = self._root(provider)
        found = self._reader.whole_tree(root)
        if not found.providers:
            raise NoSuchProvider(
                f"Another client has deleted the root {root} just now", provider_uuid=root
            )
        return tree_value(found)

    def trees(self) -> Iterator[ResourceTree]:
        """All trees, each read as the caller takes it."""
        return map(tree_value, self._reader.whole_trees())

    def traits(self) -> frozenset[str]:
        """The names of all traits that the server knows."""
        return frozenset(self._server.trait_names())

    def resource_classes(self) -> frozenset[str]:
        """The names of all resource classes that the server knows."""
        return frozenset(self._server.known_resource_classes())

    def aggregates(self) -> dict[str, tuple[ProviderReference, ...]]:
        """The members of each aggregate, by the uuid of the aggregate."""
        members: dict[str, list[ProviderReference]] = defaultdict(list)
        for found in self._reader.providers(facets=(Facet.AGGREGATES,)):
            for aggregate in found.aggregates:
                members[aggregate].append(ProviderReference(found.uuid, found.name))
        return {aggregate: tuple(found) for aggregate, found in sorted(members.items())}

    def _read(self, body: ProviderBody) -> ResourceProvider:
        for found in self._listed([body]):
            return found
        raise NoSuchProvider(
            f"Another client has deleted provider {body['name']} just now",
            provider_uuid=body["uuid"],
        )

    def _listed(self, bodies: Sequence[ProviderBody]) -> Iterator[ResourceProvider]:
        return map(provider_value, self._reader.listed(bodies, _FACETS))

    # -- writing

    def create_provider(
        self,
        name: str,
        *,
        parent: AnyProvider | None = None,
        uuid: str | None = None,
        inventories: Mapping[str, AnyInventory] | None = None,
        traits: Collection[str] = (),
        aggregates: Collection[str] = (),
    ) -> ResourceProvider:
        """Create a provider with all that it has, and the custom names that this needs.

        A creation has several writes, so an error may leave the first ones.
        `ResourceProviderCreationFailed` if the name is taken; `ProviderExists` if the uuid is.
        """
        chosen = new_uuid() if uuid is None else canonical_uuid(uuid)
        above = None if parent is None else self._uuid(parent)
        try:
            self._server.create_provider(chosen, name, above)
        except ProviderExists:
            # Only an earlier copy of this request can have made a provider of a new uuid.
            if uuid is not None:
                raise
        if inventories:
            self.set_inventories(chosen, inventories)
        if traits:
            self.set_traits(chosen, traits)
        if aggregates:
            self.set_aggregates(chosen, aggregates)
        return self.provider(chosen)

    def set_inventories(
        self, provider: AnyProvider, inventories: Mapping[str, AnyInventory]
    ) -> ResourceProvider:
        """Replace all inventories of a provider; `InventoryInUse` if one must stay."""
        wanted = {name: inventory_fields(inventory) for name, inventory in inventories.items()}
        KnownNames(self._server).ensure_classes(wanted)
        return self._replace(provider, Facet.INVENTORIES, lambda _present: wanted)

    def set_traits(self, provider: AnyProvider, traits: Collection[str]) -> ResourceProvider:
        """Replace all traits of a provider."""
        wanted = _names(traits)
        KnownNames(self._server).ensure_traits(wanted)
        return self._replace(provider, Facet.TRAITS, lambda _present: wanted)

    def set_aggregates(
        self, provider: AnyProvider, aggregates: Collection[str]
    ) -> ResourceProvider:
        """Replace all aggregates of a provider, by uuid."""
        wanted = frozenset(map(canonical_uuid, _names(aggregates)))
        return self._replace(provider, Facet.AGGREGATES, lambda _present: wanted)

    def join_aggregate(self, aggregate: str, *providers: AnyProvider) -> None:
        """Put providers into an aggregate, one after another."""
        joined = {canonical_uuid(aggregate)}
        for provider in providers:
            self._replace(provider, Facet.AGGREGATES, lambda present: present | joined)

    def leave_aggregate(self, aggregate: str, *providers: AnyProvider) -> None:
        """Take providers out of an aggregate, one after another."""
        left = {canonical_uuid(aggregate)}
        for provider in providers:
            self._replace(provider, Facet.AGGREGATES, lambda present: present - left)

    def delete_provider(self, provider: AnyProvider) -> None:
        """Delete a provider; `ResourceProviderInUse` if it has children or consumers."""
        self._server.delete_provider(self._uuid(provider))

    def create_trait(self, name: str) -> None:
        """Create a custom trait, unless the server knows it."""
        self._server.create_trait(name)

    def create_resource_class(self, name: str) -> None:
        """Create a custom resource class, unless the server knows it."""
        self._server.create_resource_class(name)

    def _replace(
        self, provider: AnyProvider, facet: Facet, edit: Callable[[Any], Any]
    ) -> ResourceProvider:
        """Replace one facet of a provider, again after a conflict or a lost answer."""
        uuid = self._uuid(provider)
        seen = provider.generation if isinstance(provider, ResourceProvider) else None
        lost: WriteLost | None = None
        for number in self._retries:
            with finding_out(lost):
                generation, present = self._present(uuid, facet)
            wanted = edit(present)
            if wanted == present:
                break
            try:
                replaced = generation if seen is None else seen
                self._server.replace(uuid, replaced, facet.value, wanted)
                break
            except WriteLost as error:
                if number == RETRIES:
                    raise
                # The next try finds out whether the server made the change.
                lost = error
            except ResourceProviderUpdateConflict:
                if seen is not None or number == RETRIES:
                    with finding_out(lost):
                        raise
        return self.provider(uuid)

    def _present(self, uuid: str, facet: Facet) -> tuple[int, Any]:
        if facet is Facet.INVENTORIES:
            return self._server.inventories(uuid)
        return (self._server.traits if facet is Facet.TRAITS else self._server.aggregates)(uuid)


def _names(names: Collection[str]) -> frozenset[str]:
    """A set of names; a text would count as the set of its letters."""
    if isinstance(names, str):
        raise ValueError(f"{names!r} is one text: write a list of names, as in [{names!r}]")
    return frozenset(names)
