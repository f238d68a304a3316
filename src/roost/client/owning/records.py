"""Where writers remember what they own."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import platformdirs

from roost.client.errors import NotConfigured
from roost.client.owning.ownership import Owned, OwnedProvider, owner_name
from roost.model.identifiers import is_uuid

_DRAFT = ".new"
_DRAFT_SECONDS = 3600


class Records(Protocol):
    """What one owner owns of each tree, by the uuid of the tree's root."""

    def load(self, root_uuid: str) -> Owned | None:
        """What is remembered; None if nothing ever was."""
        ...

    def save(self, root_uuid: str, owned: Owned) -> None:
        """Remember this instead of what was remembered before."""
        ...

    def trees(self) -> list[str]:
        """The roots of all trees of which something is remembered."""
        ...


class FileRecords:
    """Records as one small JSON file for each tree, in a directory for each owner."""

    def __init__(self, owner: str, directory: Path | None = None) -> None:
        self._directory = (directory or default_directory()) / owner_name(owner)

    def prepare(self) -> None:
        """Make sure that something can be remembered, before anything is written anywhere."""
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self._directory):
                pass
            _remove_old_drafts(self._directory)
        except OSError as error:
            raise NotConfigured(
                f"Cannot remember what is owned in {self._directory}: {error.strerror}; "
                "choose another directory with --records"
            ) from error

    def load(self, root_uuid: str) -> Owned | None:
        """What is remembered; None if nothing ever was."""
        path = self._path(root_uuid)
        try:
            body = json.loads(path.read_text())
            owned = _parse(body)
            if _rendered(owned) != body:
                raise ValueError("it is not as it was written")
            return owned
        except FileNotFoundError:
            return None
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise NotConfigured(
                f"{path} is damaged ({error}). Delete it: what this owner declares on providers "
                "that it created will be taken for its own again"
            ) from error
        except OSError as error:
            raise NotConfigured(f"Cannot read {path}: {error.strerror}") from error

    def save(self, root_uuid: str, owned: Owned) -> None:
        """Remember this instead of what was remembered before, in full or not at all."""
        path = self._path(root_uuid)
        try:
            if not owned.providers:
                path.unlink(missing_ok=True)
                return
            path.parent.mkdir(parents=True, exist_ok=True)
            _replace(path, json.dumps(_rendered(owned), indent=1, sort_keys=True))
        except OSError as error:
            raise NotConfigured(
                f"Cannot remember what is owned in {path}: {error.strerror}; make room there, or "
                "choose another directory with --records"
            ) from error

    def trees(self) -> list[str]:
        """The roots of all trees of which something is remembered."""
        return sorted(path.stem for path in self._directory.glob("*.json"))

    def _path(self, root_uuid: str) -> Path:
        if not is_uuid(root_uuid):
            raise NotConfigured(
                f"The server has a provider whose uuid is {root_uuid!r}, which is none"
            )
        return self._directory / f"{root_uuid}.json"


class MemoryRecords:
    """Records that end with the process."""

    def __init__(self) -> None:
        self._owned: dict[str, Owned] = {}

    def load(self, root_uuid: str) -> Owned | None:
        """What is remembered; None if nothing ever was."""
        return self._owned.get(root_uuid)

    def save(self, root_uuid: str, owned: Owned) -> None:
        """Remember this instead of what was remembered before."""
        self._owned.pop(root_uuid, None)
        if owned.providers:
            self._owned[root_uuid] = owned

    def trees(self) -> list[str]:
        """The roots of all trees of which something is remembered."""
        return sorted(self._owned)


def default_directory() -> Path:
    """The state directory that systemd gives a service, or the user's own."""
    given = os.environ.get("STATE_DIRECTORY", "").split(":")[0]
    return Path(given) if given else platformdirs.user_state_path("roost") / "owners"


def _replace(path: Path, text: str) -> None:
    """Have a file contain this, in full or, if that fails, not at all."""
    # A new file of a name that nothing foretells: no link can lie in its way.
    handle, draft = tempfile.mkstemp(_DRAFT, f"{path.stem}-", path.parent)
    try:
        with open(handle, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    except OSError:
        # On a full disk it would be in the way of the next attempt.
        os.unlink(draft)
        raise
    _make_durable(path.parent)


def _remove_old_drafts(directory: Path) -> None:
    """Remove what writers left behind that ended while they wrote."""
    for draft in directory.glob(f"*{_DRAFT}"):
        with suppress(OSError):
            # Another writer may be at work on a younger one.
            if draft.lstat().st_mtime < time.time() - _DRAFT_SECONDS:
                draft.unlink()


def _make_durable(directory: Path) -> None:
    """Make sure that the names in a directory survive a loss of power."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _rendered(owned: Owned) -> dict[str, Any]:
    return {
        "providers": {
            uuid: {
                "name": provider.name,
                "created": provider.created,
                "inventories": {
                    name: sorted(fields) for name, fields in provider.inventories.items()
                },
                "traits": sorted(provider.traits),
                "aggregates": sorted(provider.aggregates),
            }
            for uuid, provider in owned.providers.items()
        }
    }


def _parse(body: Mapping[str, Any]) -> Owned:
    return Owned(
        {
            uuid: OwnedProvider(
                provider["name"],
                bool(provider["created"]),
                {name: frozenset(fields) for name, fields in provider["inventories"].items()},
                frozenset(provider["traits"]),
                frozenset(provider["aggregates"]),
            )
            for uuid, provider in body["providers"].items()
        }
    )
