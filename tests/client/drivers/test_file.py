"""The driver `file`: one file, read anew, for one host or for many."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from roost.client.declaration import Declaration, DeclaredProvider
from roost.client.drivers.file import FileDriver
from roost.client.tree_file import TreeFileError

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


def test_a_host_gets_the_tree_of_its_name(path: Path) -> None:
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


def test_the_file_is_read_anew_and_may_be_broken_for_a_while(path: Path) -> None:
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


def test_a_relative_path_is_where_it_was(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_text(ANY_HOST)
    monkeypatch.chdir(path.parent)
    driver = FileDriver(path=path.name)
    monkeypatch.chdir("/")
    assert driver.declare("a").roots[0].name == "a"


def test_a_host_that_is_not_there_is_told_who_is(path: Path) -> None:
    told = refusal(path, TWO_HOSTS, "disk")
    assert told.startswith(f"{path}: no root is named `disk`: there are compute-1, compute-2;")
    assert "declares no providers at all" in refusal(path, "providers: []", "compute-1")
    many = "providers: [" + ", ".join(f"{{name: h{i}}}" for i in range(99)) + "]"
    assert "h9 and 89 more; add it" in refusal(path, many, "compute-1")


def test_names_that_meet_on_this_host_are_refused(path: Path) -> None:
    text = 'providers:\n  - name: compute-1\n  - name: "{node}"\n'
    assert refusal(path, text, "compute-1") == (
        f"{path}:3: on this host `{{node}}` and `compute-1` (line 2) are both `compute-1`:"
        " rename one of them"
    )
    assert declare(path, text, "compute-2").providers == (DeclaredProvider("compute-2"),)


def test_one_uuid_for_all_hosts_is_refused(path: Path) -> None:
    text = 'providers: [{name: "{node}", uuid: 5a1cbbc0-7f0e-4b6c-9a53-3a3f0d1f2b11}]'
    assert f"{path}:1: `{{node}}` is another provider on each host" in refusal(path, text, "a")


def test_the_standard_input_cannot_be_read_again_and_again() -> None:
    with pytest.raises(ValueError, match="again and again"):
        FileDriver(path="-")


def test_what_looks_odd_is_logged(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path.write_text("providers: [{name: a, traits: [HW_CPU_X86_AVX22]}]")
    with caplog.at_level(logging.WARNING):
        FileDriver(path=str(path)).declare("a")
    (record,) = caplog.records
    assert record.getMessage().startswith(f"{path}:1:32: `HW_CPU_X86_AVX22` is not among")
