"""The notification protocol of systemd: readiness, status and watchdog of a service."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping

from roost.model.text import printable

SHORTEST_WATCHDOG_SECONDS = 0.1


class SystemdNotifier:
    """Sends states of the service to systemd; without `NOTIFY_SOCKET` it sends nothing.

    systemd expects a call of `alive` at least every `watchdog_seconds`, or none if that is `None`.
    """

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._address = environ.get("NOTIFY_SOCKET", "")
        self.watchdog_seconds = _watchdog_seconds(environ)

    def ready(self) -> None:
        """Tell that the service has started."""
        self._send("READY=1")

    def status(self, text: str) -> None:
        """Set the line that `systemctl status` shows."""
        first_line = text.partition("\n")[0]
        self._send(f"STATUS={printable(first_line)}")

    def alive(self) -> None:
        """Reset the watchdog."""
        self._send("WATCHDOG=1")

    def reloading(self) -> None:
        """Tell that the service reads its configuration again; `ready` tells the end of that."""
        microseconds = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
        self._send(f"RELOADING=1\nMONOTONIC_USEC={microseconds}")

    def stopping(self) -> None:
        """Tell that the service is about to end."""
        self._send("STOPPING=1")

    def _send(self, state: str) -> None:
        if not self._address:
            return
        # An address that begins with @ is one of Linux's abstract sockets.
        address = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
                # A full socket of systemd must not delay the service.
                sender.settimeout(1)
                # Error texts name files, and file names need not be valid UTF-8.
                sender.sendto(state.encode(errors="replace"), address)
        except OSError:
            # The service works without systemd as well.
            return


def _watchdog_seconds(environ: Mapping[str, str]) -> float | None:
    """The watchdog interval of this process, `None` if systemd does not watch it."""
    microseconds = environ.get("WATCHDOG_USEC", "")
    process_id = environ.get("WATCHDOG_PID", str(os.getpid()))
    valid = microseconds.isascii() and microseconds.isdigit()
    if not valid or process_id != str(os.getpid()):
        return None
    if not int(microseconds):
        return None
    return max(int(microseconds) / 1_000_000, SHORTEST_WATCHDOG_SECONDS)
