"""The environments that the documents of the Placement API draw, one world each.

The names are the drawings' own. Where a drawing contradicts the API, the API is followed and a
comment says so.
"""

from __future__ import annotations

from typing import Final

from roost.demo.world import ProviderSpec, World, totals
from roost.model.inventory import Inventory

SHARES: Final = "MISC_SHARES_VIA_AGGREGATE"

# Modeling with Provider Trees: Sharing Resource Providers, first drawing.
SHARING: Final = World(
    "sharing",
    "Two flat compute nodes; one of them reaches a shared storage pool",
    (
        ProviderSpec(
            "SS1", inventories=totals(DISK_GB=1000), traits=(SHARES,), aggregates=("aggA",)
        ),
        ProviderSpec("SS2", inventories=totals(DISK_GB=1000), traits=(SHARES,)),
        ProviderSpec(
            "CN1",
            inventories=totals(VCPU=8, MEMORY_MB=1024, DISK_GB=1000),
            aggregates=("aggA",),
        ),
        ProviderSpec("CN2", inventories=totals(VCPU=8, MEMORY_MB=1024, DISK_GB=1000)),
    ),
)

# Modeling with Provider Trees: Sharing Resource Providers, second drawing. Filtering Aggregates
# asks its questions of the same environment.
SHARING_NUMA: Final = World(
    "sharing-numa",
    "Two compute nodes with NUMA nodes share a pool; an aggregate on a root, one on a child",
    (
        ProviderSpec(
            "SS1", inventories=totals(DISK_GB=1000), traits=(SHARES,), aggregates=("aggA",)
        ),
        ProviderSpec(
            "CN1",
            inventories=totals(MEMORY_MB=1024, DISK_GB=1000),
            aggregates=("aggA", "aggB"),
        ),
        ProviderSpec("NUMA1_1", "CN1", inventories=totals(VCPU=8)),
        ProviderSpec("NUMA1_2", "CN1", inventories=totals(VCPU=8)),
        ProviderSpec("CN2", inventories=totals(MEMORY_MB=1024, DISK_GB=1000), aggregates=("aggA",)),
        ProviderSpec("NUMA2_1", "CN2", inventories=totals(VCPU=8), aggregates=("aggB",)),
        ProviderSpec("NUMA2_2", "CN2", inventories=totals(VCPU=8)),
    ),
)

# Modeling with Provider Trees: Filtering by Traits. Granular Resource Requests asks its
# questions of the same environment.
NIC_TRAITS: Final = World(
    "nic-traits",
    "A compute node with two network cards, one of which accelerates SSL",
    (
        ProviderSpec("CN1", inventories=totals(VCPU=8, MEMORY_MB=1024, DISK_GB=1000)),
        ProviderSpec(
            "NIC1_1", "CN1", inventories=totals(SRIOV_NET_VF=8), traits=("HW_NIC_ACCEL_SSL",)
        ),
        ProviderSpec("NIC1_2", "CN1", inventories=totals(SRIOV_NET_VF=8)),
    ),
)

# Modeling with Provider Trees: Filtering by Tree. The drawing leaves the sharing trait out and
# its one aggregate without a name.
IN_TREE: Final = World(
    "in-tree",
    "Two compute nodes with NUMA nodes and two storage pools, all in one aggregate",
    (
        ProviderSpec(
            "SS1", inventories=totals(DISK_GB=1000), traits=(SHARES,), aggregates=("agg",)
        ),
        ProviderSpec(
            "SS2", inventories=totals(DISK_GB=1000), traits=(SHARES,), aggregates=("agg",)
        ),
        ProviderSpec("CN1", inventories=totals(DISK_GB=1000), aggregates=("agg",)),
        ProviderSpec("NUMA1_1", "CN1", inventories=totals(VCPU=4)),
        ProviderSpec("NUMA1_2", "CN1", inventories=totals(VCPU=4)),
        ProviderSpec("CN2", inventories=totals(DISK_GB=1000), aggregates=("agg",)),
        ProviderSpec("NUMA2_1", "CN2", inventories=totals(VCPU=4)),
        ProviderSpec("NUMA2_2", "CN2", inventories=totals(VCPU=4)),
    ),
)

# Modeling with Provider Trees: Filtering by Root Provider Traits.
ROOT_TRAITS: Final = World(
    "root-traits",
    "A flat host and a NUMA host: what the host can do is on the root, what a CPU can is with it",
    (
        ProviderSpec(
            "NON_NUMA_CN",
            inventories=totals(VCPU=8, MEMORY_MB=1024, DISK_GB=1000),
            traits=(
                "HW_CPU_X86_AVX2",
                "STORAGE_DISK_SSD",
                "COMPUTE_VOLUME_MULTI_ATTACH",
                "CUSTOM_WINDOWS_LICENSE_POOL",
            ),
        ),
        ProviderSpec(
            "NUMA_CN",
            inventories=totals(DISK_GB=1000),
            traits=("STORAGE_DISK_SSD", "COMPUTE_VOLUME_MULTI_ATTACH"),
        ),
        ProviderSpec("NUMA1", "NUMA_CN", inventories=totals(VCPU=4, MEMORY_MB=1024)),
        ProviderSpec(
            "NUMA2",
            "NUMA_CN",
            inventories=totals(VCPU=4, MEMORY_MB=1024),
            traits=("HW_CPU_X86_AVX2",),
        ),
    ),
)

# Modeling with Provider Trees: Filtering by Same Subtree. The drawing's class ACCELERATOR_FPGA
# does not exist; the standard one is FPGA.
SAME_SUBTREE: Final = World(
    "same-subtree",
    "A host whose two NUMA nodes have one and two FPGAs, of two types",
    (
        ProviderSpec("CN"),
        ProviderSpec(
            "NUMA0", "CN", inventories=totals(VCPU=4, MEMORY_MB=2048), traits=("HW_NUMA_ROOT",)
        ),
        ProviderSpec(
            "NUMA1", "CN", inventories=totals(VCPU=4, MEMORY_MB=2048), traits=("HW_NUMA_ROOT",)
        ),
        ProviderSpec("FPGA0_0", "NUMA0", inventories=totals(FPGA=1), traits=("CUSTOM_TYPE1",)),
        ProviderSpec("FPGA1_0", "NUMA1", inventories=totals(FPGA=1), traits=("CUSTOM_TYPE1",)),
        ProviderSpec("FPGA1_1", "NUMA1", inventories=totals(FPGA=1), traits=("CUSTOM_TYPE2",)),
    ),
)

# The spec's answers tell capacities of 6144 and 16 where its drawings say 4096 and 8: both are
# true with these allocation ratios.
_NODE: Final = (Inventory("PCPU", 8), Inventory("MEMORY_MB", 4096, allocation_ratio=1.5))
_FUNCTION: Final = (Inventory("SRIOV_NET_VF", 8, allocation_ratio=2.0),)

# Return resources of entire trees: Case1. The physical function is below the NUMA node that the
# drawing shows.
ENTIRE_TREES_CASE1: Final = World(
    "entire-trees-case1",
    "A compute node that has nothing itself: all is in its NUMA nodes and below",
    (
        ProviderSpec("CN_NAME"),
        ProviderSpec("NUMA_NODE_0", "CN_NAME", inventories=_NODE),
        ProviderSpec("NUMA_NODE_1", "CN_NAME", inventories=_NODE),
        ProviderSpec("PHYS_FUNC_PCI_ID", "NUMA_NODE_0", inventories=_FUNCTION),
    ),
)

# Return resources of entire trees: Case2.
ENTIRE_TREES_CASE2: Final = World(
    "entire-trees-case2",
    "A compute node with shared CPUs above NUMA nodes with dedicated ones",
    (
        ProviderSpec("CN_NAME", inventories=totals(VCPU=8)),
        ProviderSpec("NUMA_NODE_0", "CN_NAME", inventories=_NODE),
        ProviderSpec("NUMA_NODE_1", "CN_NAME", inventories=_NODE),
        ProviderSpec("PHYS_FUNC_PCI_ID", "NUMA_NODE_0", inventories=_FUNCTION),
    ),
)

# The drawing of update_provider_tree names no resources; without any, nothing could be shared.
_CPUS: Final = totals(VCPU=16, MEMORY_MB=32768)
_PORT: Final = totals(SRIOV_NET_VF=8)
_BANDWIDTH: Final = totals(
    NET_BW_EGR_KILOBIT_PER_SEC=10_000_000, NET_BW_IGR_KILOBIT_PER_SEC=10_000_000
)

# ComputeDriver.update_provider_tree: The Method. Both compute nodes have a NUMA1 and a PF1, so
# the names in here begin with the root's.
UPDATE_PROVIDER_TREE: Final = World(
    "update-provider-tree",
    "Two hosts that share storage and bandwidth with children of a third tree",
    (
        ProviderSpec("CN1"),
        ProviderSpec("CN1/NUMA1", "CN1", _CPUS),
        ProviderSpec("CN1/PF1", "CN1/NUMA1", _PORT),
        ProviderSpec("CN1/PF2", "CN1/NUMA1", _PORT),
        ProviderSpec("CN1/NUMA2", "CN1", _CPUS, aggregates=("agg1",)),
        ProviderSpec("CN1/PF3", "CN1/NUMA2", _PORT),
        ProviderSpec("CN1/PF4", "CN1/NUMA2", _PORT, aggregates=("agg2",)),
        ProviderSpec("SHR_ROOT"),
        ProviderSpec("SSP", "SHR_ROOT", totals(DISK_GB=1000), (SHARES,), aggregates=("agg1",)),
        ProviderSpec("BW1", "SHR_ROOT", _BANDWIDTH, (SHARES,), aggregates=("agg2",)),
        ProviderSpec("BW2", "SHR_ROOT", _BANDWIDTH, (SHARES,), aggregates=("agg3",)),
        ProviderSpec("CN2"),
        ProviderSpec("CN2/NUMA1", "CN2", _CPUS, aggregates=("agg1",)),
        ProviderSpec("CN2/PF1", "CN2/NUMA1", _PORT, aggregates=("agg3",)),
        ProviderSpec("CN2/PF2", "CN2/NUMA1", _PORT),
        ProviderSpec("CN2/NUMA2", "CN2", _CPUS),
        ProviderSpec("CN2/PF3", "CN2/NUMA2", _PORT),
        ProviderSpec("CN2/PF4", "CN2/NUMA2", _PORT),
    ),
)

DRAWINGS: Final = (
    SHARING,
    SHARING_NUMA,
    NIC_TRAITS,
    IN_TREE,
    ROOT_TRAITS,
    SAME_SUBTREE,
    ENTIRE_TREES_CASE1,
    ENTIRE_TREES_CASE2,
    UPDATE_PROVIDER_TREE,
)
