"""The standard traits of the CPUs of a machine: flags in, `HW_CPU_*` and `HW_ARCH_*` out."""

from __future__ import annotations

import os_traits

from roost.client.drivers.machine.values import Cpu

X86_TRAITS = {
    # A flag of Linux, and the trait without `HW_CPU_X86_`.
    "3dnow": "3DNOW",
    "abm": "ABM",
    "aes": "AESNI",
    "amx_bf16": "AMXBF16",
    "amx_int8": "AMXINT8",
    "amx_tile": "AMXTILE",
    "avx": "AVX",
    "avx2": "AVX2",
    "bmi1": "BMI",
    "bmi2": "BMI2",
    "f16c": "F16C",
    "fma": "FMA3",
    "fma4": "FMA4",
    "mmx": "MMX",
    "mpx": "MPX",
    "pclmulqdq": "CLMUL",
    "pdpe1gb": "PDPE1GB",
    "pni": "SSE3",  # "Prescott New Instructions", the older name of SSE3
    "rtm": "TSX",
    "sgx": "SGX",
    "sha_ni": "SHA",
    "sse": "SSE",
    "sse2": "SSE2",
    "sse4_1": "SSE41",
    "sse4_2": "SSE42",
    "sse4a": "SSE4A",
    "ssse3": "SSSE3",
    "stibp": "STIBP",
    "svm": "SVM",
    "tbm": "TBM",
    "vmx": "VMX",
    "xop": "XOP",
}

# CPUs without AVX-512 have some of these flags too, for shorter registers.
X86_AVX512_TRAITS = {
    "avx512_bitalg": "AVX512BITALG",
    "avx512_vbmi2": "AVX512VBMI2",
    "avx512_vnni": "AVX512VNNI",
    "avx512_vpopcntdq": "AVX512VPOPCNTDQ",
    "avx512bw": "AVX512BW",
    "avx512cd": "AVX512CD",
    "avx512dq": "AVX512DQ",
    "avx512er": "AVX512ER",
    "avx512f": "AVX512F",
    "avx512ifma": "AVX512IFMA",
    "avx512pf": "AVX512PF",
    "avx512vbmi": "AVX512VBMI",
    "avx512vl": "AVX512VL",
    "gfni": "AVX512GFNI",
    "vaes": "AVX512VAES",
    "vpclmulqdq": "AVX512VPCLMULQDQ",
}

# These traits name a vendor. The same flag on a CPU of another vendor does not count.
X86_VENDOR_TRAITS = {
    "GenuineIntel": {
        "ibrs": "INTEL_SPEC_CTRL",
        "md_clear": "INTEL_MD_CLEAR",
        "pcid": "INTEL_PCID",
        "ssbd": "INTEL_SSBD",
        "tdx": "INTEL_TDX",
        "vmx": "INTEL_VMX",
    },
    "AuthenticAMD": {
        # Linux has no flags for `amd_no_ssb` and `amd_ssbd`; only libvirt reports them.
        "amd_no_ssb": "AMD_NO_SSB",
        "amd_ssbd": "AMD_SSBD",
        "ibpb": "AMD_IBPB",
        "sev": "AMD_SEV",
        "sev_es": "AMD_SEV_ES",
        "sev_snp": "AMD_SEV_SNP",
        "svm": "AMD_SVM",
        "virt_ssbd": "AMD_VIRT_SSBD",
    },
}


def cpu_traits(cpu: Cpu) -> frozenset[str]:
    """All standard traits that the properties of the CPUs stand for.

    >>> sorted(cpu_traits(Cpu("aarch64", flags=frozenset({"sve", "unheard_of"}))))
    ['HW_ARCH_AARCH64', 'HW_CPU_AARCH64_SVE']
    """
    traits = {f"HW_ARCH_{cpu.architecture.upper()}"} | _flag_traits(cpu)
    if cpu.hyperthreading:
        traits.add("HW_CPU_HYPERTHREADING")
    # os-traits has no trait for some architectures of Linux and for some flags of ARM.
    return frozenset(traits.intersection(os_traits.get_traits("HW_")))


def _flag_traits(cpu: Cpu) -> set[str]:
    if cpu.architecture == "aarch64":
        return {f"HW_CPU_AARCH64_{flag.upper()}" for flag in cpu.flags}
    if cpu.architecture in ("x86_64", "i686"):
        names = X86_TRAITS | X86_AVX512_TRAITS if "avx512f" in cpu.flags else X86_TRAITS
        of_vendor = X86_VENDOR_TRAITS.get(cpu.vendor, {})
        return {
            f"HW_CPU_X86_{table[flag]}"
            for table in (names, of_vendor)
            for flag in cpu.flags & table.keys()
        }
    return set()
