"""The driver `libvirt`: the host of a libvirt daemon, here or elsewhere, as a tree of providers."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

from roost.client.declaration import Declaration
from roost.client.drivers.driver import DeclaringDriver
from roost.client.drivers.libvirt.capabilities import read_cpu, read_nodes, whole_cpu
from roost.client.drivers.libvirt.node_devices import read_disks, read_pci_functions
from roost.client.drivers.machine.errors import MachineUnreadable
from roost.client.drivers.machine.options import read_options
from roost.client.drivers.machine.tree import declare_machine
from roost.client.drivers.machine.values import Machine
from roost.client.errors import NotConfigured

_LOG = logging.getLogger(__name__)


class LibvirtDriver(DeclaringDriver):
    """Describes the host at `uri`. The other options are those of `MachineOptions`.

    Each look has a connection of its own: one that is kept between looks may have died in the
    meantime, which libvirt notices only when something is asked over it. It only ever looks, so
    the connection is read-only.
    """

    def __init__(self, **options: object) -> None:
        self._options = read_options("libvirt", options, own=("uri",))
        self._uri = str(options.get("uri", "qemu:///system"))
        self._libvirt = _import_libvirt()

    def declare(self, nodename: str) -> Declaration:
        """The host as it is now."""
        return declare_machine(self._read_machine(), nodename, self._options)

    def _read_machine(self) -> Machine:
        try:
            connection = self._libvirt.openReadOnly(self._uri)
            try:
                return self._ask(connection)
            finally:
                connection.close()
        except self._libvirt.libvirtError as error:
            raise MachineUnreadable(
                f"libvirt at {self._uri} does not answer: {error}. Does its daemon run, and may "
                f"this user read from it (try: virsh -r -c {self._uri} capabilities)?"
            ) from error

    def _ask(self, connection: Any) -> Machine:
        capabilities = connection.getCapabilities()
        devices = list(self._devices(connection))
        return Machine(
            cpu=read_cpu(capabilities, self._expanded_cpu(connection, capabilities)),
            nodes=read_nodes(capabilities, connection.getInfo()),
            pci_functions=read_pci_functions(devices),
            disks=read_disks(devices),
        )

    def _devices(self, connection: Any) -> Iterator[str]:
        """What libvirt tells of each device, but for those that are gone by then.

        Anything else that goes wrong is not the device's: a host whose devices all vanish because
        a connection broke off would lose them on the server, too.
        """
        flags = (
            self._libvirt.VIR_CONNECT_LIST_NODE_DEVICES_CAP_PCI_DEV
            | self._libvirt.VIR_CONNECT_LIST_NODE_DEVICES_CAP_STORAGE
        )
        for device in connection.listAllDevices(flags):
            try:
                yield device.XMLDesc(0)
            except self._libvirt.libvirtError as error:
                if error.get_error_code() != self._libvirt.VIR_ERR_NO_NODE_DEVICE:
                    raise
                _LOG.warning("Device %s is left out: it vanished: %s", device.name(), error)

    def _expanded_cpu(self, connection: Any, capabilities: str) -> str | None:
        """The host's CPU with all its features.

        Capabilities list only those that the CPU has besides what its model stands for. Not every
        hypervisor can tell more; then these have to do.
        """
        flags = self._libvirt.VIR_CONNECT_BASELINE_CPU_EXPAND_FEATURES
        try:
            expanded: str = connection.baselineCPU([whole_cpu(capabilities)], flags)
        except self._libvirt.libvirtError as error:
            _LOG.info("libvirt at %s cannot list all CPU features: %s", self._uri, error)
            return None
        return expanded


def _import_libvirt() -> Any:
    try:
        import libvirt  # noqa: PLC0415  # the library is an extra
    except ImportError as error:
        raise NotConfigured(
            "The libvirt driver needs the Python binding of libvirt: install roost[libvirt], or "
            "the distribution's python3-libvirt where this Python finds it."
        ) from error
    # By default the library also prints what it raises.
    libvirt.registerErrorHandler(lambda *_: None, None)
    return libvirt
