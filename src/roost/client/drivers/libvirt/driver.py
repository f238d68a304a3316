"""The driver `libvirt`: the host of a libvirt daemon as a tree of providers."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

from roost.client.drivers.driver import DeclaringDriver
from roost.client.drivers.libvirt.capabilities import read_cpu, read_nodes, whole_cpu
from roost.client.drivers.libvirt.node_devices import read_disks, read_pci_functions
from roost.client.drivers.machine.options import MachineOptions
from roost.client.drivers.machine.tree import declare_machine
from roost.client.drivers.machine.values import DeviceKind, Machine, MachineUnreadable
from roost.client.errors import NotConfigured
from roost.model.text import without_user_info
from roost.model.trees.declaration import Declaration

_LOG = logging.getLogger(__name__)


# The URI may have a password, so `repr` does not show the fields.
@dataclass(kw_only=True, repr=False)
class LibvirtDriver(MachineOptions, DeclaringDriver):
    """Describes the host of a libvirt daemon.

    Each report opens a read-only connection of its own. A connection that stays
    open may die, and libvirt notices that only with the next request.
    """

    uri: Annotated[str, "Connection URI of libvirt."] = "qemu:///system"

    def __post_init__(self) -> None:
        """Read the options, and find the binding."""
        super().__post_init__()
        self._libvirt = _import_libvirt()

    def declare(self, nodename: str) -> Declaration:
        """The host in its present state."""
        return declare_machine(self._read_machine(), nodename, self)

    def _read_machine(self) -> Machine:
        try:
            connection = self._libvirt.openReadOnly(self.uri)
            try:
                return self._ask(connection)
            finally:
                connection.close()
        except self._libvirt.libvirtError as error:
            uri = without_user_info(self.uri)
            raise MachineUnreadable(
                f"libvirt at {uri} does not answer: {without_user_info(str(error))}. Check that "
                f"its daemon runs and lets this user read: virsh -r -c {uri} capabilities"
            ) from error

    def _ask(self, connection: Any) -> Machine:
        capabilities = connection.getCapabilities()
        devices = list(self._devices(connection))
        functions, unread = read_pci_functions(devices)
        disks, has_all_disks = read_disks(devices)
        return Machine(
            cpu=read_cpu(capabilities, self._expanded_cpu(connection, capabilities)),
            nodes=read_nodes(capabilities, connection.getInfo()),
            pci_functions=functions,
            disks=disks,
            unread=unread if has_all_disks else unread.with_kinds([DeviceKind.DISK]),
        )

    def _devices(self, connection: Any) -> Iterator[str]:
        """The XML of each device, without the devices that vanish meanwhile.

        Any other error ends the reading. If the driver left out all devices after a broken
        connection, the agent would remove them from the server.
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
                _LOG.warning(
                    "The driver no longer declares device %s, which vanished: %s",
                    device.name(),
                    error,
                )

    def _expanded_cpu(self, connection: Any, capabilities: str) -> str | None:
        """The host's CPU with all its features.

        The capabilities list only the features beyond those of the CPU's model. `None` if the
        hypervisor cannot list all features.
        """
        flags = self._libvirt.VIR_CONNECT_BASELINE_CPU_EXPAND_FEATURES
        try:
            expanded: str = connection.baselineCPU([whole_cpu(capabilities)], flags)
        except self._libvirt.libvirtError as error:
            uri = without_user_info(self.uri)
            _LOG.info("libvirt at %s cannot list all CPU features: %s", uri, error)
            return None
        return expanded


def _import_libvirt() -> Any:
    try:
        import libvirt  # noqa: PLC0415  # libvirt is an extra
    except ImportError as error:
        raise NotConfigured(
            "The libvirt driver needs the Python binding of libvirt: install roost[libvirt], or "
            "the distribution's python3-libvirt where this Python finds it."
        ) from error
    # By default the library also prints each error that it raises.
    libvirt.registerErrorHandler(lambda *_: None, None)
    return libvirt
