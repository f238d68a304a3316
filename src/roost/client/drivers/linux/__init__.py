"""A driver that reads `/sys` and `/proc` of a Linux machine, or a capture of them."""

from roost.client.drivers.linux.driver import LinuxDriver

__all__ = ["LinuxDriver"]
