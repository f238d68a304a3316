"""The server of `roost ui` in this process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from roost.cli.ui.command import PageServer
from roost.cli.ui.gateway import Gateway


@contextmanager
def serving(gateway: Gateway, host: str = "127.0.0.1") -> Iterator[str]:
    """The address at which browsers find the gateway."""
    with PageServer(host, 0, gateway) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        shown = f"[{host}]" if ":" in host else host
        try:
            yield f"http://{shown}:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
