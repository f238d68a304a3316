"""The owners that have records on this machine, and what these claim."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from roost.client.errors import NotConfigured, PlacementError
from roost.client.ownership.owner_names import is_owner_trait, owner_name
from roost.client.ownership.record import OwnedProvider, OwnershipRecord
from roost.client.ownership.record_lock import LockHolder
from roost.client.ownership.store import FileOwnershipStore
from roost.model.identifiers import is_uuid


@dataclass(frozen=True, slots=True)
class RecordedOwner:
    """What the records of one owner claim, by the uuid of the tree's root.

    `problems` has a sentence for each record that cannot be read.
    """

    name: str
    trees: Mapping[str, OwnershipRecord]
    written_at: float | None
    holder: LockHolder | None
    problems: tuple[str, ...] = ()

    def providers(self) -> Iterator[tuple[str, OwnedProvider]]:
        """All providers of which the owner owns something, by uuid."""
        for record in self.trees.values():
            yield from record.providers.items()

    @property
    def servers(self) -> list[str]:
        """The servers that the records belong to; those of older versions name none."""
        named = (record.server for record in self.trees.values())
        return sorted({str(server) for server in named if server is not None})

    def __bool__(self) -> bool:
        return bool(self.trees or self.holder or self.problems)


def owned_traits(owned: OwnedProvider) -> list[str]:
    """The traits that an owner owns of a provider, without its own mark."""
    return sorted(trait for trait in owned.traits if not is_owner_trait(trait))


def owners_in(directory: Path) -> list[str]:
    """The names of the owners that have a directory here; none without the directory."""
    return sorted(path.name for path in _files(directory) if path.is_dir() and _is_owner(path.name))


def read_owner(name: str, directory: Path) -> RecordedOwner:
    """The records of an owner. A record that cannot be read is a problem of its own."""
    store = FileOwnershipStore(name, directory)
    trees: dict[str, OwnershipRecord] = {}
    problems: list[str] = []
    # The store takes a directory that it cannot read for an empty one.
    _files(directory / name)
    for root_uuid in filter(is_uuid, store.trees()):
        try:
            record = store.load(root_uuid)
        except PlacementError as error:
            problems.append(str(error))
        else:
            # Another process may have removed it just now.
            if record is not None:
                trees[root_uuid] = record
    return RecordedOwner(name, trees, store.written_at(), store.holder(), tuple(problems))


def _files(directory: Path) -> list[Path]:
    try:
        return list(directory.iterdir())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise NotConfigured(
            f"Cannot read the ownership records in {directory}: {error.strerror}; become a user "
            "that may read them, or choose another directory with --records"
        ) from error


def _is_owner(name: str) -> bool:
    try:
        return owner_name(name) == name
    except NotConfigured:
        return False
