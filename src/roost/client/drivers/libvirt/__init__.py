"""The driver `libvirt`, which asks a libvirt daemon about its host."""

from roost.client.drivers.libvirt.driver import LibvirtDriver

__all__ = ["LibvirtDriver"]
