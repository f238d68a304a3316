"""The CPUs of a machine: their numbers, the isolated ones, and their common flags."""

from __future__ import annotations

from roost.client.drivers.linux.files import Files, read_whole, unexpected
from roost.client.drivers.machine.values import Cpu, MachineUnreadable

CPUINFO = "/proc/cpuinfo"
CPUS = "/sys/devices/system/cpu"
_CPUS_MAX = 1 << 16

# A guest can use these features only if KVM has switched them on.
_KVM_SWITCHES = {
    "sev": "/sys/module/kvm_amd/parameters/sev",
    "sev_es": "/sys/module/kvm_amd/parameters/sev_es",
    "sev_snp": "/sys/module/kvm_amd/parameters/sev_snp",
    "tdx": "/sys/module/kvm_intel/parameters/tdx",
}


def parse_cpu_list(text: str, path: str) -> frozenset[int]:
    """The CPUs in a list of the kernel, which comes from the file at `path`.

    >>> sorted(parse_cpu_list("0-2,8", "/sys/devices/system/cpu/online"))
    [0, 1, 2, 8]
    """
    cpus: set[int] = set()
    try:
        for part in filter(None, text.split(",")):
            first, _, last = part.partition("-")
            begin, end = int(first), int(last or first)
            if not 0 <= begin <= end < _CPUS_MAX:
                raise ValueError
            cpus.update(range(begin, end + 1))
    except ValueError:
        raise unexpected(path, "a list of CPUs like 0-3,8", text) from None
    return frozenset(cpus)


def read_cpu_list(files: Files, path: str) -> frozenset[int] | None:
    """The CPUs in a list file; `None` if the file does not exist."""
    text = read_whole(files, path)
    return None if text is None else parse_cpu_list(text, path)


def read_online_cpus(files: Files) -> frozenset[int]:
    """The logical CPUs that are online."""
    path = f"{CPUS}/online"
    cpus = read_cpu_list(files, path)
    if not cpus:
        raise MachineUnreadable(f"{path} does not exist, or lists no CPU; sysfs must be whole.")
    return cpus


def read_cpus_of_proc(files: Files) -> frozenset[int]:
    """The logical CPUs in `/proc/cpuinfo`, for containers without sysfs."""
    cpus = parse_cpu_list(",".join(_values(files, "processor")), CPUINFO)
    if not cpus:
        raise MachineUnreadable(f"{CPUINFO} does not exist, or lists no CPU; mount procfs.")
    return cpus


def read_isolated_cpus(files: Files) -> frozenset[int]:
    """The CPUs that the kernel keeps free for pinned workloads (`isolcpus=`)."""
    return read_cpu_list(files, f"{CPUS}/isolated") or frozenset()


def read_cpu(files: Files, online: frozenset[int]) -> Cpu:
    """The properties that all online CPUs share."""
    flags = _common_flags(files)
    switched_on = {flag for flag, path in _KVM_SWITCHES.items() if files.text(path) in ("Y", "1")}
    return Cpu(
        architecture=files.text("/proc/sys/kernel/arch") or _guess_architecture(flags),
        vendor=next(iter(_values(files, "vendor_id")), ""),
        flags=(flags - _KVM_SWITCHES.keys()) | switched_on,
        hyperthreading=any(_has_sibling(files, cpu) for cpu in sorted(online)),
    )


def _has_sibling(files: Files, cpu: int) -> bool:
    path = f"{CPUS}/cpu{cpu}/topology/thread_siblings_list"
    return len(read_cpu_list(files, path) or ()) > 1


def _common_flags(files: Files) -> frozenset[str]:
    """The flags of all cores. A workload may run on any core, and cores may differ."""
    flags = [frozenset(value.split()) for value in _values(files, "flags", "Features")]
    return frozenset.intersection(*flags) if flags else frozenset()


def _values(files: Files, *fields: str) -> list[str]:
    lines = files.lines(CPUINFO, *fields)
    return [line.partition(":")[2].strip() for line in lines]


def _guess_architecture(flags: frozenset[str]) -> str:
    """The architecture under kernels before 6.1, which have no file for it."""
    if "asimd" in flags:
        return "aarch64"
    if "fpu" in flags:
        return "x86_64" if "lm" in flags else "i686"
    return ""
