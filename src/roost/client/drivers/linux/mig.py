"""The instances (MIG) that an NVIDIA GPU is divided into."""

from __future__ import annotations

from roost.client.drivers.linux.files import Files, unexpected

_GPUS = "/proc/driver/nvidia/gpus"
_CAPABILITIES = "/proc/driver/nvidia/capabilities"
_MINOR = "Device Minor"


def count_mig_instances(files: Files, address: str) -> int:
    """The number of compute instances of the GPU at a PCI address.

    The driver shows neither their profiles nor their sizes in files.
    """
    if not files.has(f"{_GPUS}/{address}"):
        return 0
    path = f"{_GPUS}/{address}/information"
    lines = files.lines(path, _MINOR)
    minor = lines[0].partition(":")[2].strip() if lines else ""
    if not minor.isdecimal():
        raise unexpected(path, f"a number for {_MINOR!r}", minor)
    instances = f"{_CAPABILITIES}/gpu{minor}/mig"
    return sum(
        len(files.names(f"{instances}/{instance}", "ci[0-9]*"))
        for instance in files.names(instances, "gi[0-9]*")
    )
