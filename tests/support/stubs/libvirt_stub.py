"""The names of libvirt's Python binding that the driver uses, with prepared answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


class LibvirtError(Exception):
    """An error like those of the library."""

    def __init__(self, message: str, code: int = 38) -> None:
        super().__init__(message)
        self._code = code

    def get_error_code(self) -> int:
        return self._code


NO_NODE_DEVICE = 53


@dataclass(frozen=True)
class NodeDevice:
    """A device with its description, or an error instead."""

    xml: str | LibvirtError

    def name(self) -> str:
        return "the_device"

    def XMLDesc(self, flags: int) -> str:  # noqa: N802
        assert flags == 0
        if isinstance(self.xml, LibvirtError):
            raise self.xml
        return self.xml


@dataclass
class Connection:
    """A connection to a host. `closed` says whether the driver has closed it."""

    capabilities: str
    devices: Sequence[str | LibvirtError] = ()
    expanded_cpu: str | None = None
    info: Sequence[object] = ("x86_64", 4096, 4, 2000, 1, 1, 4, 1)
    closed: bool = False

    def getCapabilities(self) -> str:  # noqa: N802
        return self.capabilities

    def getInfo(self) -> list[object]:  # noqa: N802
        return list(self.info)

    def listAllDevices(self, flags: int) -> list[NodeDevice]:  # noqa: N802
        assert flags == 2 | 256
        return [NodeDevice(xml) for xml in self.devices]

    def baselineCPU(self, cpus: list[str], flags: int) -> str:  # noqa: N802
        assert cpus[0].startswith("<cpu>")
        assert flags == 1
        if self.expanded_cpu is None:
            raise LibvirtError("this function is not supported by the connection driver")
        return self.expanded_cpu

    def close(self) -> None:
        self.closed = True


@dataclass
class LibvirtStub:
    """The module. Each call opens the next of these connections, or raises the next error."""

    connections: list[Connection | LibvirtError]
    opened: list[str] = field(default_factory=list)

    libvirtError = LibvirtError  # noqa: N815
    VIR_CONNECT_LIST_NODE_DEVICES_CAP_PCI_DEV = 2
    VIR_CONNECT_LIST_NODE_DEVICES_CAP_STORAGE = 256
    VIR_CONNECT_BASELINE_CPU_EXPAND_FEATURES = 1
    VIR_ERR_NO_NODE_DEVICE = NO_NODE_DEVICE

    def openReadOnly(self, uri: str) -> Connection:  # noqa: N802
        self.opened.append(uri)
        connection = self.connections[len(self.opened) - 1]
        if isinstance(connection, LibvirtError):
            raise connection
        return connection

    def registerErrorHandler(self, handler: object, context: object) -> None:  # noqa: N802
        assert callable(handler)
        assert context is None
