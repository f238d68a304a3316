"""The traits of CPUs are standard traits that follow from flags, vendor and architecture."""

from __future__ import annotations

import os_traits
import pytest

from roost.client.drivers.machine.cpu_traits import (
    X86_AVX512_TRAITS,
    X86_TRAITS,
    X86_VENDOR_TRAITS,
    cpu_traits,
)
from roost.client.drivers.machine.values import Cpu


def x86(*flags: str, vendor: str = "") -> set[str]:
    traits = cpu_traits(Cpu("x86_64", vendor, frozenset(flags)))
    return {trait.removeprefix("HW_CPU_X86_") for trait in traits} - {"HW_ARCH_X86_64"}


def test_cpus_with_every_flag_have_every_standard_trait() -> None:
    """`cpu_traits` drops a misspelt trait without a word, so this test counts all of them."""
    common = X86_TRAITS.keys() | X86_AVX512_TRAITS.keys()
    found = {
        trait
        for vendor, traits in X86_VENDOR_TRAITS.items()
        for trait in cpu_traits(Cpu("x86_64", vendor, frozenset(common | traits.keys())))
    }
    # No CPU has a flag for ASF.
    standard = set(os_traits.get_traits("HW_CPU_X86_")) - {"HW_CPU_X86_ASF"}
    assert found == standard | {"HW_ARCH_X86_64"}


def test_flags_of_avx512_count_only_on_cpus_with_avx512() -> None:
    assert x86("vaes", "gfni", "vpclmulqdq") == set()
    assert x86("vaes", "avx512f") == {"AVX512VAES", "AVX512F"}


@pytest.mark.parametrize(
    ("vendor", "expected"),
    [
        ("GenuineIntel", {"VMX", "INTEL_VMX", "INTEL_PCID", "INTEL_SPEC_CTRL", "INTEL_SSBD"}),
        ("AuthenticAMD", {"VMX", "AMD_IBPB"}),
        ("", {"VMX"}),
    ],
)
def test_traits_with_a_vendor_are_for_cpus_of_that_vendor(vendor: str, expected: set[str]) -> None:
    assert x86("vmx", "pcid", "ibrs", "ibpb", "ssbd", vendor=vendor) == expected


def test_an_architecture_without_standard_trait_gets_no_traits() -> None:
    assert cpu_traits(Cpu("loongarch64", flags=frozenset({"fpu", "sse"}))) == frozenset()


def test_hyperthreading_is_a_trait_of_any_architecture() -> None:
    assert cpu_traits(Cpu("ppc64le", hyperthreading=True)) == {
        "HW_ARCH_PPC64LE",
        "HW_CPU_HYPERTHREADING",
    }
