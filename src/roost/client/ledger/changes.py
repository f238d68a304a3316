"""What was written to a server of Roost, page by page, and as it happens. Frozen values."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from roost.client.errors import UnreadableAnswer
from roost.client.ledger.ledger_server import LedgerServer
from roost.client.ledger.values import AnyProvider, ProviderReference
from roost.client.questions import Json, ask_changes, next_changes

# A server that cannot wait answers at once, and is not asked more often.
_PAUSE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class LedgerChange:
    """A change of one provider, or of the names of classes or traits."""

    at: datetime
    """When it was written, in UTC."""
    kind: str
    """Such as `usage`, `inventory`, `traits`, `provider_created` or `provider_deleted`."""
    provider: ProviderReference | None
    """Its name is empty if it is not known; `None` for a change of names of classes or traits."""
    root: ProviderReference | None
    """The root of its tree, if it is known."""
    resource_classes: tuple[str, ...] = ()
    """The classes that changed; if there are none, any class may have changed."""
    request_id: str | None = None
    """The request that wrote it; `None` for another program than Roost."""
    user_id: str | None = None
    project_id: str | None = None


@dataclass(frozen=True, slots=True)
class LedgerPage:
    """Changes in the order of their commits, whole transactions, and the cursor after them."""

    changes: tuple[LedgerChange, ...]
    cursor: str
    """From here the next changes follow, on any server of the same database."""


class ChangeLedger(LedgerServer):
    """What was written to a server, by which request."""

    def changes(
        self,
        since: str | None = None,
        *,
        wait: int | None = None,
        provider: AnyProvider | None = None,
        root: AnyProvider | None = None,
        kinds: Sequence[str] = (),
        page_limit: int | None = None,
    ) -> Iterator[LedgerPage]:
        """Pages of what was written since a cursor; without one, changes begin now.

        The pages end when nothing is left. With `wait` they have no end: the server holds a
        request until something happens, and a page without changes comes after that many
        seconds at most. Keep the cursor of each page that is worked off. `CursorExpired` means
        that the server has forgotten some of the changes since the cursor.
        """
        conditions = {
            "provider": None if provider is None else self._name(provider),
            "root": None if root is None else self._name(root),
            "kind": ",".join(kinds) or None,
            "page_limit": page_limit,
        }
        more = True
        while more or wait is not None:
            asked = time.monotonic()
            answer = next_changes(self._server, ask_changes(since, wait, **conditions), since)
            since, more = answer["next"], answer["more"]
            yield page_value(answer)
            if wait and not more and not answer["changes"]:
                self._sleep(max(0.0, asked + _PAUSE_SECONDS - time.monotonic()))

    @staticmethod
    def _name(provider: AnyProvider) -> str:
        return provider if isinstance(provider, str) else provider.uuid


def page_value(answer: Json) -> LedgerPage:
    """The answer of `GET /roost/changes`."""
    return LedgerPage(tuple(map(_change, answer["changes"])), answer["next"])


def _change(change: Json) -> LedgerChange:
    return LedgerChange(
        at=_moment(change["at"]),
        kind=change["kind"],
        provider=_reference(change["provider"]),
        root=_reference(change["root"]),
        resource_classes=tuple(change["resource_classes"]),
        request_id=change["request_id"],
        user_id=change["user_id"],
        project_id=change["project_id"],
    )


def _moment(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise UnreadableAnswer(f"The server tells a time that is none: {text[:40]!r}") from None


def _reference(provider: Json | None) -> ProviderReference | None:
    if provider is None:
        return None
    return ProviderReference(provider["uuid"], provider["name"] or "")
