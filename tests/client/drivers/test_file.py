"""The driver `file` declares the tree of a file whose root has the name of the host."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from roost.client.drivers.file import FileDriver
from roost.client.tree_file import TreeFileError
from roost.model.trees.declaration import Declaration, DeclaredProvider

TWO_HOSTS = """
providers:
  - {name: disk, parent: compute-2}
  - name: compute-1
    inventories: {VCPU: 4}
  - name: compute-2
"""
ANY_HOST = """
providers:
  - name: "{node}"
    children: [{name: "{node}_numa0"}]
  - {name: "{node}_numa1", parent: "{node}"}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tree.yaml"


def declare(path: Path, text: str, nodename: str) -> Declaration:
    path.write_text(text)
    return FileDriver(path=str(path)).declare(nodename)


def refusal(path: Path, text: str, nodename: str) -> str:
    with pytest.raises(TreeFileError) as caught:
        declare(path, text, nodename)
    return str(caught.value)


def test_a_host_gets_the_tree_with_its_name(path: Path) -> None:
    first = DeclaredProvider("compute-1", inventories={"VCPU": {"total": 4}})
    assert declare(path, TWO_HOSTS, "compute-1") == Declaration((first,))
    second = (DeclaredProvider("compute-2"), DeclaredProvider("disk", parent="compute-2"))
    assert declare(path, TWO_HOSTS, "compute-2") == Declaration(second)


def test_one_file_serves_many_hosts(path: Path) -> None:
    for host in ("compute-1", "compute-2"):
        assert declare(path, ANY_HOST, host).providers == (
            DeclaredProvider(host),
            DeclaredProvider(f"{host}_numa0", parent=host),
            DeclaredProvider(f"{host}_numa1", parent=host),
        )


def test_the_driver_reads_a_changed_file_again_even_after_errors(path: Path) -> None:
    path.write_text("providers: [{name: a}]")
    driver = FileDriver(path=str(path))
    before = driver.declare("a")
    path.write_text("providers: [{name: a")
    with pytest.raises(TreeFileError, match=f"{path}:1:21: this cannot be read as YAML"):
        driver.declare("a")
    path.unlink()
    with pytest.raises(TreeFileError, match=f"{path}: cannot be read"):
        driver.declare("a")
    path.write_text("providers: [{name: a, traits: [CUSTOM_NEW]}]")
    after = driver.declare("a")
    assert [before.roots[0].traits, after.roots[0].traits] == [set(), {"CUSTOM_NEW"}]


def test_a_relative_path_stays_relative_to_the_first_directory(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.write_text(ANY_HOST)
    monkeypatch.chdir(path.parent)
    driver = FileDriver(path=path.name)
    monkeypatch.chdir("/")
    assert driver.declare("a").roots[0].name == "a"


def test_an_error_about_a_missing_root_lists_the_roots(path: Path) -> None:
    refused = refusal(path, TWO_HOSTS, "disk")
    assert refused.startswith(f"{path}: no root is named `disk`: there are compute-1, compute-2;")
    assert "declares no providers at all" in refusal(path, "providers: []", "compute-1")
    many = "providers: [" + ", ".join(f"{{name: h{i}}}" for i in range(99)) + "]"
    assert "h9 and 89 more; add it" in refusal(path, many, "compute-1")


def test_two_providers_with_the_same_name_on_this_host_are_refused(path: Path) -> None:
    text = 'providers:\n  - name: compute-1\n  - name: "{node}"\n'
    refused = refusal(path, text, "compute-1")
    assert refused.startswith(f"{path}:3: on this host `{{node}}` and `compute-1` (line 2)")
    assert declare(path, text, "compute-2").providers == (DeclaredProvider("compute-2"),)


def test_a_uuid_beside_a_placeholder_is_refused(path: Path) -> None:
    text = 'providers: [{name: "{node}", uuid: 5a1cbbc0-7f0e-4b6c-9a53-3a3f0d1f2b11}]'
    assert f"{path}:1: `{{node}}` is another provider on each host" in refusal(path, text, "a")


def test_the_standard_input_is_refused() -> None:
    with pytest.raises(ValueError, match="instead of -"):
        FileDriver(path="-")


def test_the_driver_logs_the_warnings_of_the_file(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path.write_text("providers: [{name: a, traits: [HW_CPU_X86_AVX22]}]")
    with caplog.at_level(logging.WARNING):
        FileDriver(path=str(path)).declare("a")
    (record,) = caplog.records
    assert record.getMessage().startswith(f"{path}:1:32: `HW_CPU_X86_AVX22` is not among")
