"""`roost metrics-queries --from-flavors`: named queries out of Nova's flavours."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from roost.client.compute.nova_flavor import NovaFlavor
from roost.configuration.query_file import read_query_file
from roost.testing import FakePlacement
from support.roost_command import roost
from support.stubs.nova_stub import NovaStub

# The SDK deprecates parts of itself; Python shows that in tests only.
pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning:openstack", "ignore::PendingDeprecationWarning:openstack"
)

COMMAND = ("metrics-queries", "--from-flavors")
OF_ROOT = "&root_required=!COMPUTE_STATUS_DISABLED"


@pytest.fixture
def nova(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[NovaStub]:
    with NovaStub() as stub:
        stub.write_clouds(tmp_path / "clouds.yaml")
        monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(tmp_path / "clouds.yaml"))
        monkeypatch.setenv("OS_CLOUD", "stub")
        yield stub


def flavor(ephemeral: int = 0, swap: int = 0, **specs: str) -> NovaFlavor:
    """Four processors; in the names of extra specs, `__` stands for the colon."""
    named = {key.replace("__", ":"): value for key, value in specs.items()}
    return NovaFlavor("one", 4, 8192, 20, ephemeral, swap, named)


@pytest.mark.parametrize(
    ("asked", "query"),
    [
        (flavor(), "resources=VCPU:4,MEMORY_MB:8192,DISK_GB:20"),
        (flavor(ephemeral=5, swap=1025), "resources=VCPU:4,MEMORY_MB:8192,DISK_GB:27"),
        (
            flavor(
                resources__VCPU="0",
                resources__MEMORY_MB="0",
                resources__DISK_GB="0",
                resources__CUSTOM_BAREMETAL="1",
            ),
            "resources=CUSTOM_BAREMETAL:1",
        ),
        (
            flavor(trait__HW_CPU_X86_AVX2="required", trait__CUSTOM_SLOW="forbidden"),
            "resources=VCPU:4,MEMORY_MB:8192,DISK_GB:20&required=!CUSTOM_SLOW,HW_CPU_X86_AVX2",
        ),
        (
            flavor(resources_G__VGPU="1", trait_G__CUSTOM_A100="required"),
            "resources=VCPU:4,MEMORY_MB:8192,DISK_GB:20&resources_G=VGPU:1&required_G=CUSTOM_A100",
        ),
        (
            flavor(resources1__VGPU="1", resources2__VGPU="1"),
            "resources=VCPU:4,MEMORY_MB:8192,DISK_GB:20&resources1=VGPU:1&resources2=VGPU:1"
            "&group_policy=none",
        ),
        (
            flavor(resources1__VGPU="1", resources2__VGPU="1", group_policy="isolate"),
            "resources=VCPU:4,MEMORY_MB:8192,DISK_GB:20&resources1=VGPU:1&resources2=VGPU:1"
            "&group_policy=isolate",
        ),
        (flavor(hw__cpu_policy="dedicated"), "resources=PCPU:4,MEMORY_MB:8192,DISK_GB:20"),
        (
            flavor(hw__cpu_policy="dedicated", hw__emulator_threads_policy="isolate"),
            "resources=PCPU:5,MEMORY_MB:8192,DISK_GB:20",
        ),
        (
            flavor(hw__cpu_policy="mixed", hw__cpu_dedicated_mask="^0"),
            "resources=VCPU:1,PCPU:3,MEMORY_MB:8192,DISK_GB:20",
        ),
        (
            flavor(hw__cpu_policy="dedicated", hw__cpu_thread_policy="isolate"),
            "resources=PCPU:4,MEMORY_MB:8192,DISK_GB:20&required=!HW_CPU_HYPERTHREADING",
        ),
    ],
)
def test_a_query_asks_what_nova_asks(asked: NovaFlavor, query: str) -> None:
    assert asked.query() == query + OF_ROOT


def test_a_server_takes_every_query() -> None:
    server = FakePlacement()
    server.add_provider("host", inventories={"VCPU": {"total": 8}, "MEMORY_MB": {"total": 9000}})
    query = NovaFlavor("one", 4, 8192, extra_specs={"trait:HW_CPU_X86_AVX2": "forbidden"}).query()
    assert server.ask("GET", f"/roost/capacity?{query}").json["fits"] == 1


def test_the_lines_are_a_file_that_the_server_reads(nova: NovaStub, tmp_path: Path) -> None:
    nova.add_flavor("m1.small", 1, 2048, 20)
    nova.add_flavor("gpu large", 8, 32768, resources__VGPU="1", pci_passthrough__alias="a1:2")
    nova.add_flavor("gpu/large", 8, 32768, hw_rng__allowed="True")
    printed = roost(*COMMAND)
    assert printed.status == 0, printed.err
    done = roost(*COMMAND, "-f", "queries.conf")
    assert (done.out, done.err) == ("", "queries.conf: 3 flavours\n")
    file = tmp_path / "queries.conf"
    assert file.read_text() == printed.out
    assert file.stat().st_mode & 0o777 == 0o644
    assert {line.name: line.query for line in read_query_file(str(file))} == {
        "gpu-large": f"resources=VCPU:8,MEMORY_MB:32768,VGPU:1{OF_ROOT}",
        "gpu-large-2": f"resources=VCPU:8,MEMORY_MB:32768{OF_ROOT}",
        "m1.small": f"resources=VCPU:1,MEMORY_MB:2048,DISK_GB:20{OF_ROOT}",
    }
    assert "# flavour gpu large\n" in printed.out
    assert "# gpu-large: not in the query: pci_passthrough:alias\n" in printed.out
    assert "hw_rng" not in printed.out


def test_names_choose_flavours(nova: NovaStub) -> None:
    for name in ("m1.small", "m1.large", "c1.small"):
        nova.add_flavor(name, 1, 2048)
    chosen = roost(*COMMAND, "--flavor", "m1.*", "--flavor", "none")
    assert [line.split()[0] for line in chosen.lines[1:]] == ["m1.large", "m1.small"]
    none = roost(*COMMAND, "--flavor", "none", "-f", "queries.conf")
    assert none.status == 1
    assert "No flavour has such a name" in none.err
    assert not Path("queries.conf").exists()


def test_more_flavours_than_a_file_may_have_are_refused(nova: NovaStub) -> None:
    for number in range(501):
        nova.add_flavor(f"f{number}", 1, 2048)
    refused = roost(*COMMAND)
    assert (refused.status, refused.out) == (1, "")
    assert "The server takes 500 queries, and there are 501 flavours" in refused.err


def test_a_nova_that_refuses_leaves_the_file(nova: NovaStub, tmp_path: Path) -> None:
    (tmp_path / "queries.conf").write_text("old")
    nova.forbids = True
    refused = roost(*COMMAND, "-f", "queries.conf")
    assert refused.status == 1
    assert "Nova of the cloud 'stub' did not tell" in refused.err
    assert (tmp_path / "queries.conf").read_text() == "old"
