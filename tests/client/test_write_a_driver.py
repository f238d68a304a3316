"""The drivers and commands of docs/write-a-driver.md, executed."""

from __future__ import annotations

import runpy
import shlex
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from roost.cli.main import cli
from roost.client import Reporter
from roost.client.drivers.registry import load_driver_class
from support.client.live_providers import LiveProviders
from support.code_blocks import code_blocks, conversation, write_modules
from support.roost_command import roost
from support.servers.live_server import LiveServer
from support.transports.counting import CountingTransport

PAGE = Path(__file__).parents[2] / "docs" / "write-a-driver.md"


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory on Python's path with the modules of the page."""
    write_modules(PAGE, tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for module in tmp_path.glob("*.py"):
        monkeypatch.delitem(sys.modules, module.stem, raising=False)
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    return tmp_path


def test_the_first_driver_has_20_lines() -> None:
    first = next(code_blocks(PAGE, "python"))
    lines = first.text.split("class RackDriver:\n")[1].splitlines()
    assert len([line for line in lines if line.strip() and '"""' not in line]) <= 20


def test_the_commands_print_what_the_page_shows(modules: Path, server: LiveServer) -> None:
    del modules
    host = f"host-{server.port}"
    for command, printed in _commands_of("agent"):
        result = CliRunner().invoke(cli, [*_words(command, host), "--url", server.url])
        assert result.exit_code == 0, result.output
        assert result.output == printed.replace("host-7", host)


def test_the_options_are_shown_as_the_page_shows_them(modules: Path) -> None:
    del modules
    ((command, printed),) = _commands_of("driver")
    outcome = roost(*_words(command, "host-7"))
    assert outcome.status == 0, outcome.err
    assert outcome.out == printed


def test_the_page_registers_a_driver_that_it_has(modules: Path) -> None:
    (block,) = code_blocks(PAGE, "toml")
    registered = tomllib.loads(block.text)["project"]["entry-points"]["roost.drivers"]
    assert list(registered) == ["rack"]
    assert load_driver_class(registered["rack"]).__name__ == "RackDriver"
    assert (modules / "rack_driver.py").exists()


def test_the_reshaping_driver_moves_allocations(
    modules: Path, transport: CountingTransport
) -> None:
    live_providers = LiveProviders(transport)
    live_providers.add("host", totals={"VCPU": 16, "VGPU": 8})
    live_providers.claim("both", host={"VCPU": 2, "VGPU": 1})
    live_providers.claim("only graphics", host={"VGPU": 3})
    reporter = Reporter(transport)

    reporter.report(_driver(modules, "vgpu_driver", "VgpuDriver"), live_providers.name("host"))

    child = reporter.fetch(live_providers.uuid("host")).data(f"{live_providers.name('host')}_gpu")
    assert live_providers.totals("host") == {"VCPU": 16}
    assert child.inventory["VGPU"]["total"] == 8
    assert live_providers.consumer("both")["allocations"].keys() == {
        live_providers.uuid("host"),
        child.uuid,
    }
    only = live_providers.consumer("only graphics")["allocations"]
    assert only[child.uuid]["resources"] == {"VGPU": 3}
    assert len(only) == 1


def test_the_declaring_driver_is_reported(modules: Path, server: LiveServer) -> None:
    del modules
    host = f"declared-{server.port}"
    result = CliRunner().invoke(
        cli,
        shlex.split(
            f"agent --driver declared_driver:DeclaredDriver --name {host} --once --url {server.url}"
        ),
    )
    assert result.exit_code == 0, result.output
    assert f"{host}_ssd: inventory DISK_GB added (total 900)" in result.output
    assert f"{host}_ssd: traits added: CUSTOM_ROOST_OWNER_AGENT, STORAGE_DISK_SSD" in result.output


def test_the_program_reports(
    modules: Path,
    server: LiveServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["report_once.py", server.url])
    runpy.run_path(str(modules / "report_once.py"))
    assert capsys.readouterr().out == "3 providers created\n"


def test_the_ported_methods_report_what_the_old_ones_returned(transport: CountingTransport) -> None:
    live_providers = LiveProviders(transport)
    ported = [block for block in code_blocks(PAGE, "python") if "# becomes" in block.text]
    names: dict[str, Any] = {}
    for number, block in enumerate(ported):
        exec(block.text, names)
        driver = type("Ported", (), {"update_provider_tree": names["update_provider_tree"]})()
        Reporter(transport).report(
            driver, live_providers.name(f"host{number}"), live_providers.uuid(f"host{number}")
        )
    totals = {name: {"total": total} for name, total in live_providers.totals("host0").items()}
    assert totals == names["get_inventory"](None, "host")
    assert live_providers.traits("host1") == set(names["get_traits"](None, "host"))


def _driver(modules: Path, module: str, name: str) -> Any:
    return runpy.run_path(str(modules / f"{module}.py"))[name]()


def _commands_of(name: str) -> list[tuple[str, str]]:
    return [
        spoken
        for block in code_blocks(PAGE, "console")
        for spoken in conversation(block)
        if _words(spoken[0], "host")[0] == name
    ]


def _words(command: str, host: str) -> list[str]:
    """The arguments of `roost` in a command of the page."""
    _, program, *arguments = shlex.split(command.replace("host-7", host))
    assert program == "roost"
    return arguments
