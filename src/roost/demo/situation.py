"""A request to the demo cloud that nearly fits, so that there is something to explain.

A router wants dedicated CPUs with AVX-512, huge pages, and virtual functions on the network of the
north zone. All of it must be on one NUMA node. The nearest host keeps six CPUs for itself.
"""

from __future__ import annotations

from typing import Final

# A query string for `GET /allocation_candidates` at 1.39 that has no candidates.
NEARLY_FITS: Final = (
    "resources_cpu=PCPU:24,CUSTOM_HUGE_PAGES_1G:64&required_cpu=HW_CPU_X86_AVX512F"
    "&resources_port=SRIOV_NET_VF:4&required_port=CUSTOM_PHYSNET_NORTH"
    "&group_policy=none&same_subtree=_cpu,_port"
)
