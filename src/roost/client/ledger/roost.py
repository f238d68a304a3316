"""`Roost`: a placement server as a typed library for schedulers and tools."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from roost.client.ledger.changes import ChangeLedger
from roost.client.ledger.consumers import ConsumerLedger
from roost.client.ledger.providers import ProviderLedger
from roost.client.transport import Transport
from roost.client.transport.connecting import connect


class Roost(ProviderLedger, ConsumerLedger, ChangeLedger):
    """A placement server: its providers, its consumers, its changes, and questions about room.

    `server` is a URL, or a transport such as `connect(cloud="devstack")`. Without one, the
    environment names the server, as `connect` says. Consumers that a claim makes have the
    `project` and the `user`. Several threads may use one object.
    """

    def __init__(
        self,
        server: str | Transport | None = None,
        *,
        token: str | None = None,
        project: str = "default",
        user: str = "default",
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        if server is not None and not isinstance(server, str):
            if token is not None:
                raise ValueError("a transport has its own token: give the token to `connect`")
            self._transport = server
        else:
            self._transport = connect(url=server, token=token)
        super().__init__(self._transport, sleep)
        self.project = project
        self.user = user

    def close(self) -> None:
        """Close the connections of the transport."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
