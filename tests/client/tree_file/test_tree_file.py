"""The tree file: what people write, what it declares, and how one is written."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_DNS, uuid5

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.client.declaration import Declaration, DeclaredProvider
from roost.client.tree_file import TreeFileError, read_tree_file, render_tree_file
from support.tree_files import declared, parse, problem, problems

UUID = "c0ffee00-0000-0000-0000-000000000001"
OTHER_UUID = "c0ffee00-0000-0000-0000-000000000002"
PAGE = Path(__file__).parents[3] / "docs" / "tree-file.md"


# ---- what a file declares


def blocks_of_the_page() -> list[str]:
    return re.findall(r"^```\w*\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def test_the_first_example_of_the_page_declares_what_it_shows() -> None:
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


def test_the_example_with_anchors_of_the_page_writes_things_once() -> None:
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


def test_the_wrong_example_of_the_page_is_answered_as_the_page_says() -> None:
    *_, wrong, answer = blocks_of_the_page()
    assert problems(wrong) == answer.splitlines()


def test_nested_flat_and_mixed_say_the_same() -> None:
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


def test_a_chain_of_parents_may_be_longer_than_python_can_recurse() -> None:
    chain = [{"name": "p0"}, *({"name": f"p{i}", "parent": f"p{i - 1}"} for i in range(1, 1100))]
    assert len(declared(json.dumps({"providers": chain[::-1]}))) == 1100


def test_uuids_are_kept_in_the_one_spelling() -> None:
    spelt = UUID.upper().replace("-", "")
    found = declared(f"providers: [{{name: a, uuid: '{{{spelt}}}', aggregates: [{spelt}]}}]")
    assert found["a"] == DeclaredProvider("a", uuid=UUID, aggregates=frozenset({UUID}))


def test_no_providers_must_be_said_in_so_many_words() -> None:
    assert parse("providers: []").declaration == Declaration(())
    for empty in ("", "# only a comment\n", "---\n"):
        assert problem(empty).startswith("tree.yaml:1:1: the file is empty: write `providers: []`")
    assert "write [] if there are none" in problem("providers:")
    assert "write `providers: []`" in problem("owner: me")


def test_json_is_read_like_yaml() -> None:
    # Indented with tabs, a character in two halves, a number with an exponent: none of it YAML.
    text = '{\n\t"providers": [{"name": "\\ud83d\\ude00", "inventories": {"VCPU": 1e3}}]}'
    assert json.dumps(declared(text)["😀"].inventories) == '{"VCPU": {"total": 1000}}'
    assert problem('{\n\t"providers": [{"name": 5}]}').startswith("tree.yaml:2:25: ")


def test_merged_keys_give_way_to_those_that_are_written_and_to_earlier_ones() -> None:
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


def test_a_trait_of_a_newer_server_is_let_through_with_a_warning() -> None:
    found = parse("providers:\n  - name: a\n    traits: [HW_CPU_X86_AVX22, CUSTOM_A]\n")
    assert found.declaration.providers[0].traits == {"HW_CPU_X86_AVX22", "CUSTOM_A"}
    (warning,) = found.warnings
    assert warning.startswith("tree.yaml:3:14: `HW_CPU_X86_AVX22` is not among the standard traits")
    assert "did you mean `HW_CPU_X86_AVX2`?" in warning


# ---- where a file is read from


def test_a_file_and_the_standard_input_are_read_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "tree.yaml"
    # A mark at the beginning and other line ends: what editors on other systems leave.
    content = b'\xef\xbb\xbf{\r\n\t"providers": [{"name": "caf\xc3\xa9"}]}\r\n'
    path.write_bytes(content)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert read_tree_file(path) == read_tree_file("-")
    assert read_tree_file(path).lines == {"café": 2}


def test_the_standard_input_has_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    with pytest.raises(TreeFileError, match=r"^<stdin>:1:1: the file is empty"):
        read_tree_file("-")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(TreeFileError, match=r"none\.yaml: cannot be read: No such file"):
        read_tree_file(tmp_path / "none.yaml")
    latin = tmp_path / "latin.yaml"
    latin.write_bytes(b"providers:\n  - name: caf\xe9\n")
    with pytest.raises(TreeFileError, match=r"latin\.yaml:2:14: this is no UTF-8"):
        read_tree_file(latin)


# ---- what is written


def test_a_rendered_file_is_how_one_would_write_it() -> None:
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
def test_a_tree_of_any_depth_is_written_so_that_it_can_be_read(as_json: bool) -> None:
    # Inventories that are said in full are what lies deepest in a file.
    declaration = chain(65, inventories={"VCPU": {"total": 1, "reserved": 0}})
    assert parse(render_tree_file(declaration, as_json=as_json)).declaration == declaration
    assert render_tree_file(chain(1200), as_json=as_json).count("parent") == 1200 / 20 - 1


def test_a_few_levels_are_written_inside_each_other() -> None:
    nested = yaml.safe_load(render_tree_file(chain(20)))
    assert [root["name"] for root in nested["providers"]] == ["p0"]
    (_, twentieth) = yaml.safe_load(render_tree_file(chain(21)))["providers"]
    assert twentieth == {"name": "p20", "parent": "p19"}


def test_siblings_that_are_too_deep_keep_their_order() -> None:
    deep = chain(20).providers
    siblings = [DeclaredProvider(name, "p19") for name in ("c", "a", "b")]
    declaration = Declaration((*deep, *siblings, DeclaredProvider("other"), *chain_below("other")))
    assert parse(render_tree_file(declaration)).declaration == declaration


def chain_below(root: str) -> Iterator[DeclaredProvider]:
    for level in range(30):
        yield DeclaredProvider(f"{root}{level}", f"{root}{level - 1}" if level else root)


@pytest.mark.parametrize(
    "name", ["\x85", "a\u2028b", "\ufeff", "\x7f", "1e3", " a\n", "{node}", "😀"]
)
@pytest.mark.parametrize("as_json", [False, True])
def test_odd_names_are_read_back(name: str, as_json: bool) -> None:
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
    """Declarations in the order of a file: each provider is followed by all that is below it."""
    providers: list[DeclaredProvider] = []
    for name in draw(st.lists(names, unique=True, max_size=6)):
        # The parent is the last one or something above it.
        above = [*_ancestors(providers), None]
        providers.append(
            DeclaredProvider(
                name,
                parent=draw(st.sampled_from(above)),
                # Made of the name, so that no two have the same.
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


@settings(max_examples=40, deadline=None)
@given(declarations(), st.none() | names, st.booleans())
def test_what_is_written_is_read_back(
    declaration: Declaration, owner: str | None, as_json: bool
) -> None:
    found = parse(render_tree_file(declaration, owner, as_json=as_json))
    assert found.declaration == declaration
    assert found.owner == owner
