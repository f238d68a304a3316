"""A driver that asks libvirt about its host."""

from roost.client.drivers.libvirt.driver import LibvirtDriver

__all__ = ["LibvirtDriver"]
