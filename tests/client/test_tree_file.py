"""The tree file: what people write, what it declares, and what they are told."""

from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path
from uuid import NAMESPACE_DNS, uuid5

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.client.declaration import Declaration, DeclaredProvider
from roost.client.tree_file import (
    TreeFile,
    TreeFileError,
    parse_tree_file,
    read_tree_file,
    render_tree_file,
)

UUID = "c0ffee00-0000-0000-0000-000000000001"
OTHER_UUID = "c0ffee00-0000-0000-0000-000000000002"
PAGE = Path(__file__).parents[2] / "docs" / "tree-file.md"


def parse(text: str) -> TreeFile:
    return parse_tree_file(text, "tree.yaml")


def declared(text: str) -> dict[str, DeclaredProvider]:
    return {provider.name: provider for provider in parse(text).declaration.providers}


def problems(text: str) -> list[str]:
    with pytest.raises(TreeFileError) as caught:
        parse(text)
    assert str(caught.value).split("\n") == list(caught.value.problems)
    return list(caught.value.problems)


def problem(text: str) -> str:
    (only,) = problems(text)
    return only


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


# ---- what people are told


def test_every_problem_is_listed_in_the_order_of_the_lines() -> None:
    found = problems(
        f"""owner: 5
providers:
  - nme: a
  - name: b
    parent: x
    uuid: {UUID}
  - name: b
    uuid: {UUID.upper()}
    colour: red
"""
    )
    assert [text.split(": ")[0] for text in found] == [
        "tree.yaml:1:8",
        "tree.yaml:3:5",
        "tree.yaml:3:5",
        "tree.yaml:5:13",
        "tree.yaml:7:11",
        "tree.yaml:8:11",
        "tree.yaml:9:5",
    ]
    assert "`name` is missing" in found[1]
    assert "unknown key `nme`: did you mean `name`?" in found[2]
    assert "the name `b` is taken in line 4" in found[4]
    assert f"the uuid `{UUID}` is taken in line 6" in found[5]
    assert "there are name, uuid, parent, inventories" in found[6]


@pytest.mark.parametrize("spelling", ["no", "010", "1e3", "12:30", "0x1F", "true", "3.5"])
def test_a_name_that_yaml_does_not_take_for_text_needs_quotes(spelling: str) -> None:
    told = problem(f"providers:\n  - name: {spelling}\n")
    assert told.startswith("tree.yaml:2:11: `name` must be text, but YAML reads")
    assert told.endswith(f': write "{spelling}" in quotes')
    assert declared(f'providers: [{{name: "{spelling}"}}]').keys() == {spelling}


@pytest.mark.parametrize("spelling", ["2026-01-01", ".nan", "0o17", "=", "on-1"])
def test_a_name_that_is_plainly_a_name_needs_none(spelling: str) -> None:
    assert declared(f"providers: [{{name: {spelling}}}]").keys() == {spelling}


@pytest.mark.parametrize(
    ("provider", "told"),
    [
        ("name: ", "2:10: `name` must be text, not nothing: write a value"),
        ("name: {node}", "2:11: `name` must be text, not a mapping: text with { or ["),
        ("name: ''", "2:11: `name` is empty"),
        (f"name: {'x' * 201}", "2:11: `name` has 201 characters: 200 are the most"),
        ("name: !host a", "2:11: the tag !host means nothing here"),
        ("name: 0x_", "2:11: '0x_' cannot be read as int: write it in quotes"),
        ('name: "\\ud83d"', "2:11: '\\ud83d' cannot be read as str"),
        ("{name: a, no: b}", '2:15: a key must be text: write it in quotes, "no"'),
        ("{name: a, [b]: c}", "2:15: a key must be text"),
        ("{name: a, name: b}", "2:15: `name` stands here twice, first in line 2"),
        ("{name: a, <<: b}", "2:19: `<<` takes a mapping"),
        ("a", "2:5: this must be a mapping, but YAML reads `a` as text"),
        ("{name: a, uuid: b}", "2:21: `b` is no UUID"),
        ("{name: a, aggregates: [b]}", "2:28: `b` is no UUID"),
        ("{name: a, aggregates: b}", "2:27: `aggregates` must be a list, but YAML reads `b`"),
        ("{name: a, children: {name: b}}", "2:25: `children` must be a list, not a mapping"),
        ("{name: a, children: [{}]}", "2:26: `name` is missing"),
        ("{name: a, traits: [GOLD]}", "2:24: `GOLD` is neither a standard trait nor CUSTOM_"),
        ("{name: a, traits: [GOLD]}", "did you mean `CUSTOM_GOLD`?"),
        ("{name: a, traits: [hw-cpu-x86-avx2]}", "did you mean `HW_CPU_X86_AVX2`?"),
        ("{name: a, traits: [CUSTOM_é]}", "did you mean `CUSTOM__`?"),
        ("{name: a, traits: [HW_cpu]}", "2:24: `HW_cpu` is neither a standard trait"),
        ("{name: a, parent: a}", "2:23: the parents go round in a circle, `a` -> `a`"),
    ],
)
def test_a_provider_that_is_none_is_explained(provider: str, told: str) -> None:
    assert told in problem(f"providers:\n  - {provider}\n")


@pytest.mark.parametrize(
    ("inventories", "told"),
    [
        ("VCPU: 0", "2:35: `inventories.VCPU` is 0: write 1 or more"),
        ("VCPU: 2147483648", "is 2147483648: write 2147483647 or less"),
        ("VCPU: '16'", "must be a whole number or a mapping, but YAML reads `16` as text"),
        ("VCPU: 1.5", "must be a whole number or a mapping, but YAML reads `1.5`"),
        ("VCPU: true", "must be a whole number or a mapping, but YAML reads `true` as a boolean"),
        ("VCPU: {}", "2:35: `total` is missing"),
        ("VCPU: {total: 1, size: 2}", "2:46: unknown key `size`: did you mean `step_size`?"),
        ("VCPU: {total: 5, reserved: 6}", "2:56: 6 are reserved of a total of 5: write 5 or less"),
        ("VCPU: {total: 5, reserved: -1}", "`inventories.VCPU.reserved` is -1: write 0 or more"),
        ("VCPU: {total: 5, min_unit: 0}", "`inventories.VCPU.min_unit` is 0: write 1 or more"),
        ("VCPU: {total: 5, max_unit: 0}", "`inventories.VCPU.max_unit` is 0: write 1 or more"),
        ("VCPU: {total: 5, step_size: 0}", "`inventories.VCPU.step_size` is 0: write 1 or more"),
        ("VCPU: {total: 5, allocation_ratio: -1}", "allocation_ratio` is -1: write 0 or more"),
        ("VCPU: {total: 5, allocation_ratio: 4e38}", "is 4e+38: write 3.40282e+38 or less"),
        ("VCPU: {total: 5, allocation_ratio: .nan}", "must be a number, but YAML reads `.nan`"),
        ("VCPU: {total: 5, allocation_ratio: !!float .nan}", "'.nan' cannot be read as float"),
        ("CPU: 5", "2:29: `CPU` is neither a standard resource class"),
        ("CPU: 5", "did you mean `VCPU`?"),
        ("custom_gold: 5", "did you mean `CUSTOM_GOLD`?"),
    ],
)
def test_an_inventory_that_the_api_would_refuse_is_explained(inventories: str, told: str) -> None:
    assert told in "\n".join(
        problems(f"providers:\n  - {{name: a, inventories: {{{inventories}}}}}")
    )


def test_all_of_an_inventory_that_the_api_takes_is_taken() -> None:
    fields = {"total": 1, "reserved": 1, "min_unit": 9, "max_unit": 2, "allocation_ratio": 0}
    text = json.dumps({"providers": [{"name": "a", "inventories": {"VCPU": fields}}]})
    assert declared(text)["a"].inventories == {"VCPU": fields}


def test_parents_must_be_there_and_agree() -> None:
    found = problems(
        """providers:
  - name: compute-1
    children:
      - {name: numa0, parent: compute-2}
      - {name: numa1, parent: compute_1}
  - {name: compute-2, parent: elsewhere}
"""
    )
    assert found == [
        "tree.yaml:4:31: the parent is `compute-2` here, but this provider stands among the"
        " children of `compute-1`: remove `parent`, or move the provider",
        "tree.yaml:5:31: there is no provider `compute_1` in this file: did you mean `compute-1`?",
        "tree.yaml:6:31: there is no provider `elsewhere` in this file: add it to the file",
    ]


def test_each_circle_of_parents_is_told_once() -> None:
    found = problems(
        """providers:
  - name: a
    parent: c
    children:
      - name: b
        children: [{name: c}]
  - {name: x, parent: y}
  - {name: y, parent: x}
  - {name: outside, parent: y}
"""
    )
    assert found == [
        "tree.yaml:3:13: the parents go round in a circle, `a` -> `c` -> `b` -> `a`:"
        " remove `parent` from one of them",
        "tree.yaml:7:23: the parents go round in a circle, `x` -> `y` -> `x`:"
        " remove `parent` from one of them",
    ]


def test_what_is_wrong_behind_an_anchor_is_told_once() -> None:
    text = "x-a: &a {trait: []}\nproviders: [{<<: *a, name: a}, {<<: *a, name: b}]\n"
    assert problem(text) == "tree.yaml:1:10: unknown key `trait`: did you mean `traits`?"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("providers:\n  - name: a: b\n", "tree.yaml:2:12: this cannot be read as YAML (mapping"),
        ("providers:\n  - name: {node}_a\n", "tree.yaml:2:17: this cannot be read as YAML"),
        ("providers:\n\t- name: a\n", "tree.yaml:2:1: this cannot be read as YAML"),
        ("providers: [", "tree.yaml:1:13: this cannot be read as YAML"),
        ("providers: *none", "tree.yaml:1:12: this cannot be read as YAML (found undefined alias"),
        ("providers: []\n---\n{}\n", "tree.yaml:2:1: this cannot be read as YAML (expected a"),
        ("a: b\nc: d\x01", "tree.yaml:2:5: the character U+0001 cannot stand here"),
        ("- a", "tree.yaml:1:1: this must be a mapping, not a list"),
    ],
)
def test_what_is_no_tree_file_at_all_is_explained(text: str, told: str) -> None:
    assert problem(text).startswith(told)


@pytest.mark.parametrize("text", ["x-a: &a [*a]", "x-a: &a {<<: *a}", "x-a: " + "[" * 100])
def test_nesting_without_end_is_refused(text: str) -> None:
    assert "more than 64 levels of lists and mappings" in problem(text)


def test_aliases_that_stand_for_billions_are_refused() -> None:
    lines = ["x-0: &a0 [a, a, a, a, a, a, a, a, a, a]"]
    lines += [f"x-{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 10)]
    assert "aliases of this file stand for far too much" in problem("\n".join(lines))


def test_the_longer_a_file_the_more_may_its_aliases_stand_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("roost.client.yaml_lines._EXPANSION_BASE", 0)
    traits = ", ".join(["CUSTOM_A"] * 60)
    hosts = "".join(f"  - {{<<: *host, name: h{i}}}\n" for i in range(100))
    assert len(declared(f"x-h: &host {{traits: [{traits}]}}\nproviders:\n{hosts}")) == 100


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
