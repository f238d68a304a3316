"""The problems of a tree file: all of them, each with its place and its fix."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable

import pytest

from roost.client.provider_tree import LEVELS_MAX
from roost.client.tree_file.yaml_lines import NESTING_MAX
from roost.model.text import nearest
from support.client.tree_files import declared, problem, problems

UUID = "c0ffee00-0000-0000-0000-000000000001"


def test_an_error_lists_all_problems_in_the_order_of_the_lines() -> None:
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


@pytest.mark.parametrize("spelling", ["no", "010", "1e3", "0x1F", "true", "3.5"])
def test_a_name_that_yaml_does_not_read_as_text_needs_quotes(spelling: str) -> None:
    found = problem(f"providers:\n  - name: {spelling}\n")
    assert found.startswith("tree.yaml:2:11: `name` must be text, but YAML reads")
    assert found.endswith(f': write "{spelling}" in quotes')
    assert declared(f'providers: [{{name: "{spelling}"}}]').keys() == {spelling}


@pytest.mark.parametrize("spelling", ["2026-01-01", ".nan", "0o17", "=", "on-1", "12:30"])
def test_a_name_that_yaml_reads_as_text_needs_no_quotes(spelling: str) -> None:
    assert declared(f"providers: [{{name: {spelling}}}]").keys() == {spelling}


@pytest.mark.parametrize(
    ("provider", "expected"),
    [
        ("name: ", "2:10: `name` must be text, not null: write a value"),
        ("name: {node}", "2:11: `name` must be text, not a mapping: text with { or ["),
        ("name: ''", "2:11: `name` is empty"),
        (f"name: {'x' * 201}", "2:11: `name` has 201 characters: 200 are the most"),
        ("name: !host a", "2:11: the tag !host is not known here"),
        ("name: !!map a", "2:11: the tag tag:yaml.org,2002:map is not known here"),
        ("{name: a, traits: !!int []}", "2:23: the tag tag:yaml.org,2002:int is not known here"),
        ("name: 0x_", "2:11: '0x_' cannot be read as int: write it in quotes"),
        ('name: "\\ud83d"', "2:11: '\\ud83d' cannot be read as str"),
        ("{name: a, no: b}", '2:15: a key must be text: write it in quotes, "no"'),
        ("{name: a, [b]: c}", "2:15: a key must be text"),
        ("{name: a, name: b}", "2:15: `name` is here twice, first in line 2"),
        ("{name: a, <<: b}", "2:19: `<<` takes a mapping"),
        ("a", "2:5: this must be a mapping, but YAML reads `a` as text"),
        ("{name: a, uuid: b}", "2:21: `b` is not a UUID"),
        ("{name: a, aggregates: [b]}", "2:28: `b` is not a UUID"),
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
def test_a_problem_explains_a_wrong_provider(provider: str, expected: str) -> None:
    assert expected in problem(f"providers:\n  - {provider}\n")


def test_a_value_below_a_key_that_cannot_be_used_has_its_own_problem() -> None:
    key, value = problems("providers: [{name: a, 5: !host b}]")
    assert key.startswith("tree.yaml:1:23: a key must be text")
    assert value.startswith("tree.yaml:1:26: the tag !host is not known here")


@pytest.mark.parametrize(
    ("inventories", "expected"),
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
        ("VCPU: !!int ''", "2:35: '' cannot be read as int: write it in quotes, without tag"),
        ("VCPU: !!int '_'", "2:35: '_' cannot be read as int"),
        ("VCPU: !!int '+'", "2:35: '+' cannot be read as int"),
        ("CPU: 5", "2:29: `CPU` is neither a standard resource class"),
        ("CPU: 5", "did you mean `VCPU`?"),
        ("custom_gold: 5", "did you mean `CUSTOM_GOLD`?"),
    ],
)
def test_a_problem_explains_an_inventory_that_the_api_would_refuse(
    inventories: str, expected: str
) -> None:
    assert expected in "\n".join(
        problems(f"providers:\n  - {{name: a, inventories: {{{inventories}}}}}")
    )


def test_an_inventory_that_the_api_accepts_is_accepted() -> None:
    fields = {"total": 1, "reserved": 1, "min_unit": 9, "max_unit": 2, "allocation_ratio": 0}
    text = json.dumps({"providers": [{"name": "a", "inventories": {"VCPU": fields}}]})
    assert declared(text)["a"].inventories == {"VCPU": fields}


def test_parents_must_be_in_the_file_and_match_the_nesting() -> None:
    found = problems(
        """providers:
  - name: compute-1
    children:
      - {name: numa0, parent: compute-2}
      - {name: numa1, parent: compute_1}
  - {name: compute-2, parent: elsewhere}
"""
    )
    contradiction, misspelt, missing = found
    assert contradiction.startswith("tree.yaml:4:31: the parent is `compute-2` here, but")
    assert "`compute-1`" in contradiction
    assert misspelt.startswith("tree.yaml:5:31: there is no provider `compute_1`")
    assert misspelt.endswith("did you mean `compute-1`?")
    assert missing.startswith("tree.yaml:6:31: there is no provider `elsewhere`")


@pytest.mark.parametrize("parent", ["compute_1", "compute_{}"])
def test_only_the_first_wrong_parents_get_a_suggestion(
    parent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_for = []

    def look(word: str, words: Iterable[str]) -> str | None:
        looked_for.append(word)
        return nearest(word, words)

    monkeypatch.setattr("roost.client.tree_file.nearest", look)
    children = [{"name": f"numa{i}", "parent": parent.format(i)} for i in range(100)]
    found = problems(json.dumps({"providers": [{"name": "compute-1"}, *children]}))
    assert len(found) == 100
    assert sum("did you mean `compute-1`?" in text for text in found) >= 20
    assert len(looked_for) == len(set(looked_for)) <= 20


def test_each_provider_beyond_the_limit_of_levels_is_named() -> None:
    chain = [{"name": "p1"}, *({"name": f"p{i}", "parent": f"p{i - 1}"} for i in range(2, 70))]
    sibling = {"name": "sibling", "parent": f"p{LEVELS_MAX}"}
    found = problems(json.dumps({"providers": [sibling, *chain]}, indent=0))
    assert [line.split(": ", 1)[1].split(" is on level ")[0] for line in found] == [
        "`sibling`",
        f"`p{LEVELS_MAX + 1}`",
    ]
    assert all(line.endswith(": give it a parent nearer to the root") for line in found)


def test_each_circle_of_parents_is_one_problem() -> None:
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
    first, second = found
    assert first.startswith("tree.yaml:3:13: ")
    assert "`a` -> `c` -> `b` -> `a`" in first
    assert second.startswith("tree.yaml:7:23: ")
    assert "`x` -> `y` -> `x`" in second


def test_a_problem_behind_an_anchor_is_listed_once() -> None:
    text = "x-a: &a {trait: []}\nproviders: [{<<: *a, name: a}, {<<: *a, name: b}]\n"
    assert problem(text) == "tree.yaml:1:10: unknown key `trait`: did you mean `traits`?"


@pytest.mark.parametrize(
    ("text", "expected"),
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
def test_a_problem_explains_a_text_that_is_not_a_tree_file(text: str, expected: str) -> None:
    assert problem(text).startswith(expected)


@pytest.mark.parametrize("text", ["x-a: &a [*a]", "x-a: &a {<<: *a}", "x-a: " + "[" * 200])
def test_endless_nesting_is_refused(text: str) -> None:
    assert f"more than {NESTING_MAX} levels of lists and mappings" in problem(text)


def test_aliases_that_expand_to_billions_of_values_are_refused() -> None:
    lines = ["x-0: &a0 [a, a, a, a, a, a, a, a, a, a]"]
    lines += [f"x-{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 10)]
    assert "aliases" in problem("\n".join(lines))


def test_the_limit_of_expanded_aliases_grows_with_the_file() -> None:
    traits = ", ".join(["CUSTOM_A"] * 60)
    hosts = "".join(f"  - {{<<: *host, name: h{i}}}\n" for i in range(500))
    assert len(declared(f"x-h: &host {{traits: [{traits}]}}\nproviders:\n{hosts}")) == 500


# -- files that would take long to read


def inventory(amount: str) -> str:
    return f"providers:\n  - name: a\n    inventories:\n      VCPU: {amount}\n"


_MANY = 200_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (inventory("1:" * _MANY + "1"), "tree.yaml:4:13: `inventories.VCPU` must be a whole"),
        (inventory(f'!!int "{"1:" * _MANY}1"'), "tree.yaml:4:13: 400001 characters are too many"),
        (inventory("1" * _MANY), "tree.yaml:4:13: 200000 characters are too many for a number"),
        (inventory("0x" + "f" * 5000), "tree.yaml:4:13: 5002 characters are too many"),
        (inventory("0" + "7" * _MANY), "tree.yaml:4:13: 200001 characters are too many"),
        (inventory("0b" + "1" * _MANY), "tree.yaml:4:13: 200002 characters are too many"),
        (inventory("1e" + "9" * _MANY), "tree.yaml:4:13: 200002 characters are too many"),
        (inventory("1e400"), "tree.yaml:4:13: `inventories.VCPU` is inf"),
        (inventory("[" * _MANY), f"tree.yaml:4:{9 + NESTING_MAX}: more than {NESTING_MAX} levels"),
        (inventory("- " * _MANY), "tree.yaml:4:"),
        (
            inventory(f"{{<<: [{', '.join(f'{{A{number}: 1}}' for number in range(10_000))}]}}"),
            "tree.yaml:4:20: unknown key `A0`",
        ),
        (
            f"providers:\n  - name: a\n    traits: [{','.join(f'HWX_{n}' for n in range(9000))}]",
            "tree.yaml: there are more than these 100",
        ),
    ],
    ids=[
        *("base 60", "base 60 by tag", "decimal", "hexadecimal", "octal", "binary", "exponent"),
        *("infinite", "deep", "deep block", "merged", "traits"),
    ],
)
@pytest.mark.slow
def test_a_file_that_would_take_long_to_read_is_refused_within_seconds(
    text: str, expected: str
) -> None:
    begun = time.process_time()
    found = problems(text)
    assert time.process_time() - begun < 5
    assert any(expected in line for line in found)
    assert max(map(len, found)) < 1000
