"""A flavour of Nova, and the candidates query that Nova makes of it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_RESOURCES = re.compile(r"resources([A-Za-z0-9_-]{0,64}):([A-Z0-9_]+)\Z")
_TRAIT = re.compile(r"trait([A-Za-z0-9_-]{0,64}):([A-Z0-9_]+)\Z")
_CPU_POLICY = "hw:cpu_policy"
_DEDICATED_MASK = "hw:cpu_dedicated_mask"
_EMULATOR_THREADS = "hw:emulator_threads_policy"
_THREAD_POLICY = "hw:cpu_thread_policy"
_GROUP_POLICY = "group_policy"
_HYPERTHREADING = "HW_CPU_HYPERTHREADING"
_TRAIT_OF_THREAD_POLICY = {"isolate": f"!{_HYPERTHREADING}", "require": _HYPERTHREADING}
_COUNTED = {_CPU_POLICY, _DEDICATED_MASK, _EMULATOR_THREADS, _THREAD_POLICY, _GROUP_POLICY}
# These choose a host, too, but not by a query: other filters of Nova look at them.
_CHOOSING = (
    "hw:",
    "pci_passthrough:",
    "accel:",
    "capabilities:",
    "aggregate_instance_extra_specs:",
)
# Nova never schedules to a host whose service is disabled.
_OF_ROOT = "root_required=!COMPUTE_STATUS_DISABLED"


@dataclass(frozen=True, slots=True)
class NovaFlavor:
    """The size of a server. Memory and swap are in MB, disks in GB."""

    name: str
    vcpus: int
    ram: int
    disk: int = 0
    ephemeral: int = 0
    swap: int = 0
    extra_specs: Mapping[str, str] = field(default_factory=dict)

    def query(self) -> str:
        """The query string of its candidates, as Nova's documentation of extra specs defines it.

        >>> NovaFlavor("m1", 2, 4096, 20, extra_specs={"resources_G:VGPU": "1"}).query()
        'resources=VCPU:2,MEMORY_MB:4096,DISK_GB:20&resources_G=VGPU:1&root_required=!COMPUTE_STATUS_DISABLED'
        """
        amounts, traits = self._amounts(), self._traits()
        groups = sorted({suffix for suffix, _ in (*amounts, *traits)})
        parts = []
        for suffix in groups:
            asked = [f"{name}:{amount}" for (of, name), amount in amounts.items() if of == suffix]
            required = [name for of, name in traits if of == suffix]
            if asked:
                parts.append(f"resources{suffix}={','.join(asked)}")
            if required:
                parts.append(f"required{suffix}={','.join(required)}")
        policy = self.extra_specs.get(_GROUP_POLICY)
        if policy is not None or len([suffix for suffix in groups if suffix]) > 1:
            parts.append(f"group_policy={policy or 'none'}")
        return "&".join([*parts, _OF_ROOT])

    def ignored_specs(self) -> list[str]:
        """The extra specs that choose a host, and that the query does not have."""
        return sorted(
            key for key in self.extra_specs if key.startswith(_CHOOSING) and key not in _COUNTED
        )

    def _amounts(self) -> dict[tuple[str, str], int]:
        """The amounts by the suffix of the group and the class; extra specs replace the size."""
        amounts = {("", name): amount for name, amount in self._size().items()}
        for key, value in self.extra_specs.items():
            if found := _RESOURCES.match(key):
                amounts[found[1], found[2]] = int(value)
        return {key: amount for key, amount in amounts.items() if amount}

    def _size(self) -> dict[str, int]:
        dedicated = self._dedicated_cpus()
        emulator = self.extra_specs.get(_EMULATOR_THREADS) == "isolate" and dedicated > 0
        return {
            "VCPU": self.vcpus - dedicated,
            "PCPU": dedicated + emulator,
            "MEMORY_MB": self.ram,
            "DISK_GB": self.disk + self.ephemeral + math.ceil(self.swap / 1024),
        }

    def _dedicated_cpus(self) -> int:
        policy = self.extra_specs.get(_CPU_POLICY)
        if policy == "mixed":
            return len(_cpus_in(self.extra_specs.get(_DEDICATED_MASK, ""), self.vcpus))
        return self.vcpus if policy == "dedicated" else 0

    def _traits(self) -> list[tuple[str, str]]:
        """Each trait with the suffix of its group; a forbidden one begins with `!`."""
        marks = {"required": "", "forbidden": "!"}
        traits = [
            (found[1], marks[value] + found[2])
            for key, value in sorted(self.extra_specs.items())
            if (found := _TRAIT.match(key)) and value in marks
        ]
        policy = _TRAIT_OF_THREAD_POLICY.get(self.extra_specs.get(_THREAD_POLICY, ""))
        return traits if policy is None else [*traits, ("", policy)]


def _cpus_in(mask: str, count: int) -> set[int]:
    """The CPUs of a mask, out of so many.

    >>> sorted(_cpus_in("0-3,^2", 8)), sorted(_cpus_in("^0-1", 4))
    ([0, 1, 3], [2, 3])
    """
    chosen: set[int] = set()
    excluded: set[int] = set()
    for part in filter(None, (part.strip() for part in mask.split(","))):
        first, _, last = part.removeprefix("^").partition("-")
        (excluded if part.startswith("^") else chosen).update(
            range(int(first), int(last or first) + 1)
        )
    return (chosen or set(range(count))) - excluded if mask else set()
