"""Telling systemd how a service is doing, through the socket that it names."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping

from roost.model.printable import printable


class Notifier:
    """Sends states to the service manager; without one, says nothing.

    `watchdog_seconds` is how often the manager wants to hear `alive`, None if it does not.
    """

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._address = environ.get("NOTIFY_SOCKET", "")
        self.watchdog_seconds = _watchdog_seconds(environ)

    def ready(self) -> None:
        """The service does its work from now on."""
        self._send("READY=1")

    def status(self, text: str) -> None:
        """What the service is doing, for people to read."""
        first_line = text.partition("\n")[0]
        self._send(f"STATUS={printable(first_line)}")

    def alive(self) -> None:
        """The service does not hang."""
        self._send("WATCHDOG=1")

    def stopping(self) -> None:
        """The service is about to end."""
        self._send("STOPPING=1")

    def _send(self, state: str) -> None:
        if not self._address:
            return
        # An address that begins with @ is one of Linux's abstract sockets.
        address = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
                # A manager that does not listen must not hold up the work.
                sender.settimeout(1)
                # Names of files, and so texts of errors, may have what UTF-8 does not have.
                sender.sendto(state.encode(errors="replace"), address)
        except OSError:
            # Nobody to tell; the work goes on all the same.
            return


def _watchdog_seconds(environ: Mapping[str, str]) -> float | None:
    """How long the manager waits for a sign of life of this very process."""
    microseconds = environ.get("WATCHDOG_USEC", "")
    process_id = environ.get("WATCHDOG_PID", str(os.getpid()))
    valid = microseconds.isascii() and microseconds.isdigit()
    if not valid or process_id != str(os.getpid()):
        return None
    # Whoever wants to hear of it more often than this does not mean it.
    return max(int(microseconds) / 1_000_000, 0.1) if int(microseconds) else None
