"""The command `python -m roost.client.drivers.linux > machine.txt`, which captures this machine."""

from __future__ import annotations

import sys

from roost.client.drivers.linux.recorder import capture_machine

if __name__ == "__main__":
    sys.stdout.write(capture_machine())
