"""A demo world: the providers of one drawing, and the consumers of their resources."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final
from uuid import UUID, uuid5

from roost.model.inventory import Inventory

# A query string for `GET /allocation_candidates` at 1.39 that has no candidates, so that there is
# something to explain. A router wants dedicated CPUs with AVX-512, huge pages and virtual functions
# on the network of the north zone. All of it must be on one NUMA node. The nearest host keeps six
# CPUs for itself.
NEARLY_FITS: Final = (
    "resources_cpu=PCPU:24,CUSTOM_HUGE_PAGES_1G:64&required_cpu=HW_CPU_X86_AVX512F"
    "&resources_port=SRIOV_NET_VF:4&required_port=CUSTOM_PHYSNET_NORTH"
    "&group_policy=none&same_subtree=_cpu,_port"
)
SHARES: Final = "MISC_SHARES_VIA_AGGREGATE"
# Fixed, so that every uuid of the demo cloud can be printed in documentation.
NAMESPACE: Final = UUID("3c589151-986c-5f2c-869a-ebccd6a57607")


@cache
def read_data(name: str) -> Mapping[str, Any]:
    """The data in a file beside this module. A process reads it when it first asks."""
    return tomllib.loads(Path(__file__).with_name(name).read_text(encoding="utf-8"))


def demo_uuid(name: str) -> str:
    """The uuid of the provider, aggregate or consumer with this name, equal in every database.

    >>> demo_uuid("sharing/CN1")
    'f8111404-40bd-5e9a-b3b0-82147670b90a'
    """
    return str(uuid5(NAMESPACE, name))


@dataclass(frozen=True, slots=True)
class ProviderSpec:
    """One box of a drawing. `parent` and `aggregates` are names in the same drawing."""

    name: str
    parent: str | None = None
    inventories: tuple[Inventory, ...] = ()
    traits: tuple[str, ...] = ()
    aggregates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ConsumerSpec:
    """One consumer and what it holds: amounts by provider, as drawn, and resource class."""

    name: str
    consumer_type: str
    project: str
    user: str
    allocations: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class World:
    """One drawing: its providers, each parent before its children, and their consumers.

    Many drawings have a `CN1`, but names of providers are unique in a database. Hence the world's
    name goes before every name in it, unless `prefixed` is false. Remarks tell an operator what
    to try in a loaded world, and what `roost doctor` finds in it.
    """

    name: str
    title: str
    providers: tuple[ProviderSpec, ...]
    consumers: tuple[ConsumerSpec, ...] = ()
    prefixed: bool = True
    remarks: tuple[str, ...] = ()

    def full_name(self, drawn: str) -> str:
        """The name in the database of the box with this name in the drawing.

        >>> World("sharing", "", ()).full_name("CN1")
        'sharing/CN1'
        """
        return f"{self.name}/{drawn}" if self.prefixed else drawn

    def uuid(self, drawn: str) -> str:
        """The uuid of the provider, aggregate or consumer of this name in the drawing."""
        return demo_uuid(self.full_name(drawn))
