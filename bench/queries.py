"""The questions that a scenario asks."""

from __future__ import annotations

from dataclasses import dataclass

from clouds import RARE_DISK_GB, RARE_TRAIT, Cloud


@dataclass(frozen=True)
class Query:
    """A question about candidates, without its limit."""

    name: str
    parameters: str
    """`{zone}` stands for an aggregate of the cloud, `{memory}` for an amount of memory."""
    memory: int = 256

    def path(self, cloud: Cloud, limit: int | None = None, more_memory: int = 0) -> str:
        """The question as a path. Each amount of `more_memory` makes a different question."""
        parameters = self.parameters.format(zone=cloud.zone, memory=self.memory + more_memory)
        path = f"/allocation_candidates?{parameters}"
        return path if limit is None else f"{path}&limit={limit}"


# The question of the reference's own performance job.
PERFORMANCE_JOB = "resources=VCPU:1,MEMORY_MB:{memory},DISK_GB:10"
FLAT = (
    Query("plain", PERFORMANCE_JOB),
    Query("required", PERFORMANCE_JOB + "&required=HW_CPU_X86_AVX2,COMPUTE_VOLUME_MULTI_ATTACH"),
)
_INSTANCE = "resources=VCPU:4,MEMORY_MB:{memory},DISK_GB:20"
PLAIN = Query("plain", _INSTANCE)
GRANULAR = Query(
    "granular, same_subtree",
    "resources=DISK_GB:20&resources_CPU=VCPU:4,MEMORY_MB:{memory}&resources_NET=SRIOV_NET_VF:1"
    "&same_subtree=_CPU,_NET&group_policy=none",
)
MEMBER_OF = Query("member_of", _INSTANCE + "&member_of={zone}")
NESTED = (
    PLAIN,
    Query("required", _INSTANCE + "&required=HW_CPU_X86_AVX512F"),
    MEMBER_OF,
    GRANULAR,
)
_LARGE_DISK = f"resources=VCPU:4,MEMORY_MB:{{memory}},DISK_GB:{RARE_DISK_GB // 2}"
# Few trees have the trait, few others the disk, and no tree has both.
SELECTIVE = (
    Query("rare trait", f"{_INSTANCE}&required={RARE_TRAIT}"),
    Query("large amount", _LARGE_DISK),
    Query("no answer, rare trait", f"{_LARGE_DISK}&required={RARE_TRAIT}"),
    Query("no answer, amount", "resources=VCPU:4000,MEMORY_MB:{memory},DISK_GB:20"),
)
_TOGETHER = "resources_A=VCPU:40,MEMORY_MB:{memory}&resources_B=VCPU:40&resources_C=VCPU:40"
_APART = "&".join(f"resources_N{number}=SRIOV_NET_VF:1" for number in range(5))
# The first two have answers. The rest ask for too much: of one provider, of the nodes of a host
# together, and for one more network function than a host has.
EXPLAINED = (
    PLAIN,
    GRANULAR,
    Query("no answer, amount", "resources=VCPU:4000,MEMORY_MB:{memory},DISK_GB:20"),
    Query("no answer, together", f"{_TOGETHER}&group_policy=none"),
    Query("no answer, apart", f"resources=MEMORY_MB:{{memory}}&{_APART}&group_policy=isolate"),
)
# No provider has so much, so this costs only the work that every question costs.
NOTHING = Query("nothing", "resources=VCPU:2000000000")


def network_groups(groups: int, policy: str) -> Query:
    """A question with `groups` request groups for one virtual function each."""
    parameters = [f"resources{number}=SRIOV_NET_VF:1" for number in range(1, groups + 1)]
    return Query(f"{groups} groups, {policy}", "&".join([*parameters, f"group_policy={policy}"]))
