"""A queue that serves clients in turn, so that one client with many entries delays no other one."""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

Entry = TypeVar("Entry")


class ClientQueue(Generic[Entry]):
    """Entries by client. Each client with entries gets a turn before one gets its second.

    >>> queue = ClientQueue()
    >>> for client, entry in [("a", 1), ("a", 2), ("a", 3), ("b", 4)]:
    ...     queue.append(client, entry)
    >>> [queue.popleft() for _ in range(4)], bool(queue)
    ([1, 4, 2, 3], False)
    """

    def __init__(self) -> None:
        # The client whose turn is next comes first.
        self._entries: dict[str, deque[Entry]] = {}

    def __bool__(self) -> bool:
        return bool(self._entries)

    def append(self, client: str, entry: Entry) -> None:
        """Add an entry behind those of the same client."""
        self._entries.setdefault(client, deque()).append(entry)

    def popleft(self) -> Entry:
        """Take the first entry of the client whose turn it is."""
        client = next(iter(self._entries))
        entries = self._entries.pop(client)
        entry = entries.popleft()
        if entries:
            self._entries[client] = entries
        return entry

    def remove(self, client: str, entry: Entry) -> None:
        """Take an entry out of the queue."""
        self._entries[client].remove(entry)
        if not self._entries[client]:
            del self._entries[client]
