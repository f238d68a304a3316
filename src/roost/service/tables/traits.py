"""Traits: their names, and the traits of providers."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import Connection

from roost.model.identifiers import Name, is_custom, is_custom_name
from roost.model.providers import Provider
from roost.service.errors import (
    Conflict,
    ConflictCause,
    Invalid,
    NotFound,
    generation_conflict,
    provider_not_found,
)
from roost.service.tables.providers import get_locked_provider
from roost.store.rows import providers, traits, vocabulary
from roost.store.transaction import Finished, Transaction


@dataclass(frozen=True, slots=True)
class TraitNameFilter:
    """Which names `GET /traits` lists: those in `among`, or those that begin with `prefix`."""

    among: frozenset[str] | None = None
    prefix: str | None = None

    def matches(self, name: str) -> bool:
        """Whether the name passes; compared exactly, letter by letter."""
        if self.among is not None:
            return name in self.among
        return self.prefix is None or name.startswith(self.prefix)


def list_traits(
    connection: Connection, names: TraitNameFilter, associated: bool | None
) -> list[Name]:
    """All traits that pass the filters."""
    # LIKE ignores case on some databases. There are only a few hundred rows, so Python filters.
    found = vocabulary.list_traits(connection, associated)
    return [trait for trait in found if names.matches(trait.name)]


def get_trait(connection: Connection, name: str) -> Name:
    """The trait of this name."""
    trait = vocabulary.find_trait(connection, name)
    if trait is None:
        raise NotFound(f"No such trait(s): {name}.")
    return trait


def ensure_trait(transaction: Transaction, name: str) -> Finished[tuple[Name, bool]]:
    """The custom trait of this name, and whether it was created."""
    if not is_custom_name(name):
        raise Invalid(
            "The trait is invalid. A valid trait must be no longer than 255 characters, start "
            'with the prefix "CUSTOM_" and use following characters: "A"-"Z", "0"-"9" and "_"'
        )
    found = vocabulary.find_trait(transaction.connection, name)
    if found is not None:
        return transaction.finish((found, False))
    vocabulary.insert_traits(transaction, [name])
    return transaction.finish((get_trait(transaction.connection, name), True))


def delete_trait(transaction: Transaction, name: str) -> Finished[None]:
    """Delete a custom trait that no provider has."""
    trait = get_trait(transaction.connection, name)
    if not is_custom(name):
        raise Invalid(f"Cannot delete standard trait {name}.")
    if vocabulary.trait_is_used(transaction.connection, trait):
        raise Conflict(
            f"The trait {name} is in use by a resource provider.", cause=ConflictCause.IN_USE
        )
    vocabulary.delete_trait(transaction, trait)
    return transaction.finish()


def list_provider_traits(connection: Connection, uuid: str) -> tuple[int, list[Name]]:
    """The provider's generation and its traits."""
    found = traits.provider_traits(connection, uuid)
    if found is None:
        raise provider_not_found(uuid)
    return found


def replace_provider_traits(
    transaction: Transaction, uuid: str, generation: int, wanted: Collection[str]
) -> Finished[tuple[int, list[Name]]]:
    """Give the provider exactly these traits; only a difference increments its generation."""
    provider = get_locked_provider(transaction, uuid)
    if provider.generation != generation:
        raise generation_conflict()
    known = vocabulary.trait_ids(transaction.connection, wanted)
    unknown = [name for name in dict.fromkeys(wanted) if name not in known]
    if unknown:
        raise Invalid(f"No such trait {', '.join(unknown)}")
    _change(transaction, provider, set(known.values()))
    return transaction.finish(list_provider_traits(transaction.connection, provider.uuid))


def delete_provider_traits(transaction: Transaction, uuid: str) -> Finished[None]:
    """Remove all traits of the provider."""
    _change(transaction, get_locked_provider(transaction, uuid), set())
    return transaction.finish()


def _change(transaction: Transaction, provider: Provider, wanted: set[int]) -> None:
    _, found = list_provider_traits(transaction.connection, provider.uuid)
    present = {trait.id for trait in found}
    if present != wanted:
        traits.change_provider_traits(transaction, provider, wanted - present, present - wanted)
        providers.increment_generations(transaction, [provider.id])
