"""Drivers of Nova, as its package has them, with Roost's tree and Roost's agent."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from support.code_blocks import code_blocks, conversation, write_modules
from support.requirements import nova_environment
from support.servers.live_server import LiveServer

# Nova takes many seconds to import, and its environment minutes to install.
pytestmark = pytest.mark.long

PAGE = Path(__file__).parents[3] / "docs" / "provider-tree.md"
FAKE = "fake.MediumFakeDriverWithNestedCustomResources"
SECONDS_MAX = 60

# A host that exists only in the fake of libvirt: eight processors and two cards for virtual GPUs.
OVER_FAKE_LIBVIRT = """
from unittest import mock

from nova import conf
from nova.tests.fixtures import libvirt

from nova_driver import NovaDriver


class OverFakeLibvirt(NovaDriver):
    def __init__(self):
        libvirt.LibvirtFixture().setUp()
        connection = libvirt.Connection(
            "qemu:///system",
            version=libvirt.FAKE_LIBVIRT_VERSION,
            hv_version=libvirt.FAKE_QEMU_VERSION,
            host_info=libvirt.HostInfo(cpu_nodes=2, cpu_sockets=1, cpu_cores=2, cpu_threads=2),
            pci_info=libvirt.HostPCIDevicesInfo(num_pci=0, num_pfs=0, num_vfs=0, num_mdevcap=2),
        )
        patched = "nova.virt.libvirt.host.Host.get_connection"
        mock.patch(patched, return_value=connection).start()
        conf.CONF.set_override("enabled_mdev_types", ["nvidia-11"], "devices")
        super().__init__("libvirt.LibvirtDriver")
"""

# Prints what the driver makes of Nova's tree and of Roost's, then two reports of it to a server.
BOTH_TREES = """
import json
import sys

from nova.compute.provider_tree import ProviderTree as NovasTree

from nova_driver import NovaDriver
from over_fake_libvirt import OverFakeLibvirt
from roost.client import ProviderTree, Reporter, connect

name, url, host = sys.argv[1:]
driver = OverFakeLibvirt() if name == "libvirt" else NovaDriver(name)


def made(tree):
    tree.new_root(host, "c0ffee00-0000-4000-8000-000000000001", generation=0)
    for _ in range(2):
        driver.update_provider_tree(tree, host)
    providers = [tree.data(uuid) for uuid in tree.get_provider_uuids()]
    names = {provider.uuid: provider.name for provider in providers}
    return {
        one.name: [names.get(one.parent_uuid), one.inventory, sorted(one.traits)]
        for one in providers
    }


reporter = Reporter(connect(url=url))
reports = [list(reporter.report(driver, host).lines()) for _ in range(2)]
print(json.dumps([made(NovasTree()), made(ProviderTree()), *reports]))
"""

Run = Callable[..., str]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs a program of Nova's environment beside the modules of the page; its output."""
    bin_ = nova_environment() / "bin"
    write_modules(PAGE, tmp_path)
    (tmp_path / "over_fake_libvirt.py").write_text(OVER_FAKE_LIBVIRT)
    (tmp_path / "both_trees.py").write_text(BOTH_TREES)
    environment = {
        **os.environ,
        "PYTHONPATH": ".",
        "PYTHONWARNINGS": "ignore",
        "STATE_DIRECTORY": str(tmp_path / "state"),
    }

    def run_(program: str, *arguments: str) -> str:
        done = subprocess.run(
            [str(bin_ / program), *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run_


def test_the_agent_reports_what_the_page_shows(run: Run, server: LiveServer) -> None:
    (block,) = code_blocks(PAGE, "console")
    ((command, printed),) = conversation(block)
    host = f"host-7-{server.port}"
    path, program, *words = shlex.split(command.replace("host-7", host))
    assert path == "PYTHONPATH=."
    assert run(program, *words, "--url", server.url) == printed.replace("host-7", host)
    assert run(program, *words, "--url", server.url) == ""


@pytest.mark.parametrize("driver", [FAKE, "libvirt"])
def test_a_driver_makes_the_same_of_both_trees_and_of_the_server(
    run: Run, server: LiveServer, driver: str
) -> None:
    host = f"host-8-{driver[:4]}-{server.port}"
    said = run("python", "both_trees.py", driver, server.url, host)
    novas, roosts, first, second = json.loads(said)
    assert novas == roosts
    below = roosts.keys() - {host}
    assert below
    for child in below:
        assert f"{child}: created below {host}" in first
        (resource_class,) = roosts[child][1]
        assert any(f"{child}: inventory {resource_class} added" in line for line in first)
    assert second == []
