"""The driver `linux`, which reads `/sys` and `/proc` of a machine, or a capture of them."""

from roost.client.drivers.linux.driver import LinuxDriver

__all__ = ["LinuxDriver"]
