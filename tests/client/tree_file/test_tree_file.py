"""Reading and rendering tree files."""

from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_DNS, uuid5

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.client.provider_tree import LEVELS_MAX
from roost.client.tree_file import TreeFileError, read_tree_file, render_tree_file
from roost.model.trees.declaration import Declaration, DeclaredProvider
from support.client.tree_files import declared, parse, problem, problems
from support.properties import many

UUID = "c0ffee00-0000-0000-0000-000000000001"
OTHER_UUID = "c0ffee00-0000-0000-0000-000000000002"
PAGE = Path(__file__).parents[3] / "docs" / "tree-file.md"


# ---- reading a declaration


def blocks_of_the_page() -> list[str]:
    return re.findall(r"^```\w*\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def test_the_first_example_of_the_page_is_a_valid_file() -> None:
    found = parse(blocks_of_the_page()[0])
    assert found.owner == "network-team"
    assert found.warnings == ()
    assert found.lines == {"compute-1": 3, "compute-1_numa0": 8, "compute-1_eth0": 12}
    assert found.declaration.providers == (
        DeclaredProvider(
            "compute-1",
            uuid="5a1cbbc0-7f0e-4b6c-9a53-3a3f0d1f2b11",
            traits=frozenset({"HW_CPU_X86_AVX2", "CUSTOM_RACK_7"}),
            aggregates=frozenset({"0e5b8b3c-2d54-4a3e-8f0f-6f7f6c3f1a01"}),
        ),
        DeclaredProvider(
            "compute-1_numa0",
            parent="compute-1",
            inventories={
                "VCPU": {"total": 16},
                "MEMORY_MB": {"total": 65536, "reserved": 512, "allocation_ratio": 1.0},
            },
        ),
        DeclaredProvider(
            "compute-1_eth0",
            parent="compute-1",
            inventories={"NET_BW_EGR_KILOBIT_PER_SEC": {"total": 10000000, "step_size": 1000}},
        ),
    )


def test_the_example_of_the_page_with_anchors_declares_two_nodes() -> None:
    found = declared(blocks_of_the_page()[1])
    first, second = found["{node}_numa0"], found["{node}_numa1"]
    assert (
        first.inventories
        == second.inventories
        == {
            "VCPU": {"total": 16},
            "MEMORY_MB": {"total": 65536},
        }
    )
    assert first.traits == {"CUSTOM_RACK_7"}
    assert second.traits == {"CUSTOM_RACK_7", "CUSTOM_FAST"}


def test_the_wrong_example_of_the_page_has_the_problems_of_the_page() -> None:
    *_, wrong, answer = blocks_of_the_page()
    assert problems(wrong) == answer.splitlines()


def test_nested_flat_and_mixed_files_declare_the_same() -> None:
    nested = "providers: [{name: a, children: [{name: b, children: [{name: c}]}]}]"
    flat = "providers: [{name: c, parent: b}, {name: b, parent: a}, {name: a}]"
    mixed = "providers: [{name: b, parent: a, children: [{name: c, parent: b}]}, {name: a}]"
    providers = parse(nested).declaration.providers
    assert [(provider.name, provider.parent) for provider in providers] == [
        ("a", None),
        ("b", "a"),
        ("c", "b"),
    ]
    assert parse(flat).declaration == parse(mixed).declaration == parse(nested).declaration


def test_uuids_become_canonical() -> None:
    spelt = UUID.upper().replace("-", "")
    found = declared(f"providers: [{{name: a, uuid: '{{{spelt}}}', aggregates: [{spelt}]}}]")
    assert found["a"] == DeclaredProvider("a", uuid=UUID, aggregates=frozenset({UUID}))


def test_an_empty_file_is_refused_and_an_empty_list_accepted() -> None:
    assert parse("providers: []").declaration == Declaration(())
    for empty in ("", "# only a comment\n", "---\n"):
        assert "write `providers: []`" in problem(empty)
    assert "write [] if there are none" in problem("providers:")
    assert "write `providers: []`" in problem("owner: me")


def test_json_is_read_like_yaml() -> None:
    # YAML has no tabs as indentation, no pairs of surrogates and no numbers such as 1e3.
    text = '{\n\t"providers": [{"name": "\\ud83d\\ude00", "inventories": {"VCPU": 1e3}}]}'
    assert json.dumps(declared(text)["😀"].inventories) == '{"VCPU": {"total": 1000}}'
    assert problem('{\n\t"providers": [{"name": 5}]}').startswith("tree.yaml:2:25: ")


def test_written_keys_and_earlier_mappings_take_precedence_over_merged_keys() -> None:
    found = declared(
        f"""
x-first: &first {{traits: [CUSTOM_A], uuid: {UUID}}}
x-second: &second {{traits: [CUSTOM_B], aggregates: [{UUID}]}}
providers:
  - {{<<: [*first, *second], name: a, uuid: {OTHER_UUID}}}
"""
    )
    assert found["a"] == DeclaredProvider(
        "a", uuid=OTHER_UUID, traits=frozenset({"CUSTOM_A"}), aggregates=frozenset({UUID})
    )


def test_an_unknown_trait_in_a_standard_namespace_is_accepted_with_a_warning() -> None:
    found = parse("providers:\n  - name: a\n    traits: [HW_CPU_X86_AVX22, CUSTOM_A]\n")
    assert found.declaration.providers[0].traits == {"HW_CPU_X86_AVX22", "CUSTOM_A"}
    (warning,) = found.warnings
    assert warning.startswith("tree.yaml:3:14: `HW_CPU_X86_AVX22` is not among the standard traits")
    assert "did you mean `HW_CPU_X86_AVX2`?" in warning


# ---- reading a file or the standard input


def test_a_file_and_the_standard_input_are_read_in_the_same_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "tree.yaml"
    # Editors on some systems write a byte order mark and carriage returns.
    content = b'\xef\xbb\xbf{\r\n\t"providers": [{"name": "caf\xc3\xa9"}]}\r\n'
    path.write_bytes(content)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert read_tree_file(path) == read_tree_file("-")
    assert read_tree_file(path).lines == {"café": 2}


def test_a_problem_of_the_standard_input_begins_with_stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    with pytest.raises(TreeFileError, match=r"^<stdin>:1:1: the file is empty"):
        read_tree_file("-")


def test_an_error_names_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(TreeFileError, match=r"none\.yaml: cannot be read: No such file"):
        read_tree_file(tmp_path / "none.yaml")
    latin = tmp_path / "latin.yaml"
    latin.write_bytes(b"providers:\n  - name: caf\xe9\n")
    with pytest.raises(TreeFileError, match=r"latin\.yaml:2:14: this is not UTF-8"):
        read_tree_file(latin)


# ---- rendering


def test_a_rendered_file_has_short_forms() -> None:
    root = DeclaredProvider("compute-1", uuid=UUID, traits=frozenset({"HW_NUMA_ROOT", "CUSTOM_A"}))
    child = DeclaredProvider(
        "yes",
        parent="compute-1",
        inventories={"VCPU": {"total": 16}, "DISK_GB": {"total": 5, "reserved": 0}},
        aggregates=frozenset({OTHER_UUID}),
    )
    declaration = Declaration((root, child))
    assert render_tree_file(declaration, owner="network-team") == (
        f"""owner: network-team
providers:
- name: compute-1
  uuid: {UUID}
  traits:
  - CUSTOM_A
  - HW_NUMA_ROOT
  children:
  - name: 'yes'
    aggregates:
    - {OTHER_UUID}
    inventories:
      DISK_GB: {{total: 5, reserved: 0}}
      VCPU: 16
"""
    )
    assert json.loads(render_tree_file(declaration, as_json=True))["providers"][0]["uuid"] == UUID
    assert render_tree_file(Declaration(())) == "providers: []\n"


def chain(levels: int, **more: Any) -> Declaration:
    """A tree in which every provider but the last has one child."""
    providers = (
        DeclaredProvider(f"p{level}", f"p{level - 1}" if level else None, **more)
        for level in range(levels)
    )
    return Declaration(tuple(providers))


@pytest.mark.parametrize("as_json", [False, True])
def test_a_tree_with_as_many_levels_as_the_limit_is_read_back(as_json: bool) -> None:
    # The fields of an inventory are nested deepest.
    declaration = chain(LEVELS_MAX, inventories={"VCPU": {"total": 1, "reserved": 0}})
    assert parse(render_tree_file(declaration, as_json=as_json)).declaration == declaration


def test_a_tree_is_rendered_below_its_root() -> None:
    (root,) = yaml.safe_load(render_tree_file(chain(3)))["providers"]
    assert root == {"name": "p0", "children": [{"name": "p1", "children": [{"name": "p2"}]}]}


@pytest.mark.parametrize(
    "name", ["\x85", "a\u2028b", "\ufeff", "\x7f", "1e3", " a\n", "{node}", "😀"]
)
@pytest.mark.parametrize("as_json", [False, True])
def test_unusual_names_are_read_back(name: str, as_json: bool) -> None:
    declaration = Declaration((DeclaredProvider(name),))
    assert parse(render_tree_file(declaration, as_json=as_json)).declaration == declaration


amounts = st.integers(1, 2147483647)
inventory_fields = st.fixed_dictionaries(
    {"total": amounts},
    optional={
        "reserved": st.just(0),
        "min_unit": amounts,
        "max_unit": amounts,
        "step_size": amounts,
        "allocation_ratio": st.floats(0, 3.4e38) | st.integers(0, 100),
    },
)
uuids = st.uuids().map(str)
names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12) | st.from_regex(
    r"\A[-+.0-9eE_:xno{}~]{1,6}\Z"
)


@st.composite
def declarations(draw: st.DrawFn) -> Declaration:
    """Declarations in the order of a file: a provider, then all providers below it."""
    providers: list[DeclaredProvider] = []
    for name in draw(st.lists(names, unique=True, max_size=6)):
        # The parent is the last provider or one above it.
        above = [*_ancestors(providers), None]
        providers.append(
            DeclaredProvider(
                name,
                parent=draw(st.sampled_from(above)),
                # Different names give different uuids.
                uuid=draw(st.sampled_from([None, str(uuid5(NAMESPACE_DNS, name))])),
                inventories=draw(
                    st.dictionaries(
                        st.sampled_from(["VCPU", "DISK_GB", "CUSTOM_GOLD"]),
                        inventory_fields,
                        max_size=2,
                    )
                ),
                traits=draw(st.frozensets(st.sampled_from(["HW_NUMA_ROOT", "CUSTOM_A"]))),
                aggregates=draw(st.frozensets(uuids, max_size=2)),
            )
        )
    return Declaration(tuple(providers))


def _ancestors(providers: list[DeclaredProvider]) -> list[str]:
    by_name = {provider.name: provider for provider in providers}
    found: list[str] = []
    name = providers[-1].name if providers else None
    while name is not None:
        found.append(name)
        name = by_name[name].parent
    return found


@settings(max_examples=many(20))
@given(declarations(), st.none() | names, st.booleans())
def test_a_rendered_declaration_is_read_back(
    declaration: Declaration, owner: str | None, as_json: bool
) -> None:
    found = parse(render_tree_file(declaration, owner, as_json=as_json))
    assert found.declaration == declaration
    assert found.owner == owner
