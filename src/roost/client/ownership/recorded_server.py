"""The server that an ownership record belongs to. Pure.

The same tree may be on several servers, for instance on a production server and on its copy in a
lab. A record tells what its owner put on one of them. A server of Roost has an identity, which a
copy of its database shares. So the address counts, too. Other servers have the address alone, and
the project of the token.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RecordedServer:
    """A server by its identity, its address, and the project of the owner; each if it is known."""

    identity: str | None = None
    url: str | None = None
    project_id: str | None = None

    def __bool__(self) -> bool:
        return bool(self.identity or self.url)

    def __str__(self) -> str:
        """The address, or else the identity.

        >>> str(RecordedServer("0b6a", "http://host:8778")), str(RecordedServer("0b6a"))
        ('http://host:8778', '0b6a')
        """
        return self.url or self.identity or "an unknown server"

    def is_another(self, second: RecordedServer) -> bool:
        """Whether this server and a second one differ in what is known of both.

        >>> lab = RecordedServer("0b6a", "http://lab")
        >>> lab.is_another(RecordedServer("0b6a", "http://prod")), lab.is_another(RecordedServer())
        (True, False)
        """
        if _differ(self.identity, second.identity) or _differ(self.url, second.url):
            return True
        has_identity = self.identity is not None and second.identity is not None
        return not has_identity and _differ(self.project_id, second.project_id)

    def completed(self, before: RecordedServer) -> RecordedServer:
        """This server, with what is known only from before.

        >>> RecordedServer(None, "http://host").completed(RecordedServer("0b6a")).identity
        '0b6a'
        """
        return RecordedServer(
            self.identity or before.identity,
            self.url or before.url,
            self.project_id or before.project_id,
        )

    def difference(self, recorded: RecordedServer) -> str:
        """Why a record of another server is refused, and what the operator may do."""
        if not _differ(self.identity, recorded.identity) and self.identity and recorded.identity:
            return (
                "Both have the same identity: this is the same server at a new address, or a copy "
                "of its database. If it is the same server, rebind the records"
            )
        if not _differ(self.url, recorded.url):
            return (
                "Another server answers at the same address. If it has taken over the providers "
                "of the earlier one, rebind the records"
            )
        return "If it is the same server, or has taken over its providers, rebind the records"


def _differ(first: str | None, second: str | None) -> bool:
    return first is not None and second is not None and first != second
