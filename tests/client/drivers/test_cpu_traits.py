"""Traits of CPUs: only standard ones, and only where they are meant."""

from __future__ import annotations

import os_traits
import pytest

from roost.client.drivers.machine import cpu_traits as tables
from roost.client.drivers.machine.cpu_traits import cpu_traits
from roost.client.drivers.machine.values import Cpu


def x86(*flags: str, vendor: str = "") -> set[str]:
    traits = cpu_traits(Cpu("x86_64", vendor, frozenset(flags)))
    return {trait.removeprefix("HW_CPU_X86_") for trait in traits} - {"HW_ARCH_X86_64"}


def test_every_trait_of_the_tables_exists() -> None:
    """One that does not would silently never be set."""
    by_flag = [tables._X86, tables._X86_WITH_AVX512, *tables._X86_OF_VENDOR.values()]
    named = {f"HW_CPU_X86_{name}" for table in by_flag for name in table.values()}
    assert named <= set(os_traits.get_traits("HW_CPU_X86_"))
    # ASF never came to be.
    assert set(os_traits.get_traits("HW_CPU_X86_")) - named == {"HW_CPU_X86_ASF"}


def test_instructions_that_also_exist_without_avx512_do_not_promise_it() -> None:
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
def test_names_of_a_vendor_are_for_its_cpus(vendor: str, expected: set[str]) -> None:
    assert x86("vmx", "pcid", "ibrs", "ibpb", "ssbd", vendor=vendor) == expected


def test_an_architecture_without_trait_has_none() -> None:
    assert cpu_traits(Cpu("loongarch64", flags=frozenset({"fpu", "sse"}))) == frozenset()


def test_hyperthreading_is_a_trait_of_any_architecture() -> None:
    assert cpu_traits(Cpu("ppc64le", hyperthreading=True)) == {
        "HW_ARCH_PPC64LE",
        "HW_CPU_HYPERTHREADING",
    }
