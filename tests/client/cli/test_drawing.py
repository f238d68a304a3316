"""Drawings of trees: bars, remarks, traits, and the width of the console."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from roost.cli.tree.drawing import TreeDrawing
from roost.client.provider_tree import LEVELS_MAX, ProviderData, ProviderTree
from roost.client.reading.inspection import InspectedTree
from roost.model.inventory import DEFAULTS

ROOT = "5a1cbbc0-7f0e-4b6c-9a53-000000000001"


def drawn(
    inspected: InspectedTree, *, details: bool = False, styles: bool = False, width: int = 200
) -> str:
    console = Console(width=width, color_system="standard" if styles else None, force_terminal=True)
    with console.capture() as capture:
        console.print(TreeDrawing(inspected, details), crop=False)
    return capture.get()


def bar(used: int = 0, styles: bool = False, **fields: Any) -> str:
    """The line of the only inventory of a host."""
    tree = ProviderTree()
    tree.new_root("host", ROOT)
    tree.update_inventory(ROOT, {"VCPU": {**DEFAULTS, **fields}})
    text = drawn(InspectedTree(ROOT, tree, {ROOT: {"VCPU": used}}), styles=styles)
    return text.splitlines()[1].rstrip()


@pytest.mark.parametrize(
    ("used", "fields", "blocks", "words"),
    [
        (0, {"total": 8}, 0, "0 of 8"),
        (2, {"total": 8}, 5, "2 of 8"),
        (8, {"total": 8}, 20, "8 of 8"),
        (3, {"total": 16, "reserved": 4}, 5, "3 of 12 (4 of 16 reserved)"),
        (16, {"total": 8, "allocation_ratio": 4.0}, 10, "16 of 32 (allocation ratio 4)"),
        (
            *(6, {"total": 10, "reserved": 2, "allocation_ratio": 1.5}, 10),
            "6 of 12 (2 of 10 reserved, allocation ratio 1.5)",
        ),
        (0, {"total": 9, "allocation_ratio": 1.5}, 0, "0 of 13 (allocation ratio 1.5)"),
        # An operator may have reduced the total after the allocation.
        (8, {"total": 4}, 20, "8 of 4"),
        (0, {"total": 8, "reserved": 8}, 0, "0 of 0 (8 of 8 reserved)"),
        (1, {"total": 8, "reserved": 8}, 20, "1 of 0 (8 of 8 reserved)"),
    ],
)
def test_a_bar_shows_the_used_part_of_the_capacity(
    used: int, fields: dict[str, Any], blocks: int, words: str
) -> None:
    assert bar(used, **fields) == f"VCPU  {'█' * blocks}{'░' * (20 - blocks)}  {words}"


def test_a_bar_changes_its_colour_at_70_and_90_percent() -> None:
    green, yellow, red = "\x1b[32m", "\x1b[33m", "\x1b[31m"
    for used, colour in ((69, green), (70, yellow), (89, yellow), (90, red), (120, red)):
        assert colour in bar(used, styles=True, total=100), used


def test_the_bars_of_a_provider_are_aligned() -> None:
    tree = ProviderTree()
    tree.new_root("host", ROOT)
    tree.update_inventory(
        ROOT, {name: {**DEFAULTS, "total": 1} for name in ("VCPU", "MEMORY_MB", "DISK_GB")}
    )
    lines = drawn(InspectedTree(ROOT, tree, {})).splitlines()[1:]
    assert [line.split()[0] for line in lines] == ["DISK_GB", "MEMORY_MB", "VCPU"]
    assert {line.index("░") for line in lines} == {len("MEMORY_MB  ")}


def test_many_traits_are_listed_only_with_details() -> None:
    tree = ProviderTree()
    tree.new_root("host", ROOT)
    inspected = InspectedTree(ROOT, tree, {})
    assert drawn(inspected).splitlines() == [f"host  {ROOT}"]
    tree.update_traits(ROOT, ["CUSTOM_A"])
    assert "trait CUSTOM_A\n" in drawn(inspected)
    tree.update_traits(ROOT, ["CUSTOM_B", "CUSTOM_A"])
    assert "traits CUSTOM_A, CUSTOM_B\n" in drawn(inspected)
    tree.update_traits(ROOT, ["CUSTOM_C", "CUSTOM_B", "CUSTOM_A"])
    assert "3 traits\n" in drawn(inspected)
    assert "traits CUSTOM_A, CUSTOM_B, CUSTOM_C\n" in drawn(inspected, details=True)


def test_a_drawing_keeps_brackets_and_colons_of_names() -> None:
    tree = ProviderTree()
    tree.new_root("[red]rack :100: Gehäuse 机架", ROOT)
    assert drawn(InspectedTree(ROOT, tree, {})).startswith("[red]rack :100: Gehäuse 机架  ")


def chain(levels: int) -> InspectedTree:
    """A tree in which every provider but the last has one child."""
    tree = ProviderTree()
    parent = tree.new_root("level 0", ROOT)
    for level in range(1, levels):
        parent = tree.new_child(f"level {level}", parent)
    return InspectedTree(ROOT, tree, {})


def test_no_level_is_lost_on_a_terminal_that_is_narrower_than_the_tree() -> None:
    drawing = drawn(chain(LEVELS_MAX), width=80)
    lines = [line.lstrip("└─ ") for line in drawing.splitlines()]
    assert [line.split("  ")[0] for line in lines if line.startswith("level")] == [
        f"level {number}" for number in range(LEVELS_MAX)
    ]
    assert f"\n{' ' * 4 * (LEVELS_MAX - 2)}└── level {LEVELS_MAX - 1}  " in drawing


def test_a_drawing_takes_one_snapshot_of_each_provider(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tree = ProviderTree()
    tree.new_root("host", ROOT)
    for number in range(50):
        tree.new_child(f"gpu {number}", ROOT)
    snapshots = 0
    take = tree.data

    def counted(name_or_uuid: str) -> ProviderData:
        nonlocal snapshots
        snapshots += 1
        return take(name_or_uuid)

    monkeypatch.setattr(tree, "data", counted)
    inspected = InspectedTree(ROOT, tree, {})
    assert len(inspected.as_json()["children"]) == 50
    drawn(inspected)
    assert snapshots <= 2 * 51


def test_a_long_label_is_wrapped_beside_the_branches() -> None:
    tree = ProviderTree()
    tree.new_root("host", ROOT)
    numa = tree.new_child("numa", ROOT)
    tree.update_traits(numa, [f"CUSTOM_{letter * 20}" for letter in "ABCD"])
    tree.new_child("disk", ROOT)
    lines = drawn(InspectedTree(ROOT, tree, {}), details=True, width=60).splitlines()
    assert [line.rstrip() for line in lines[2:5]] == [
        f"│   traits CUSTOM_{'A' * 20},",
        f"│   CUSTOM_{'B' * 20},",
        f"│   CUSTOM_{'C' * 20}, CUSTOM_{'D' * 20}",
    ]


def test_a_console_that_is_not_utf_8_gets_ascii() -> None:
    tree = ProviderTree()
    tree.new_root("host", ROOT)
    gpu = tree.new_child("gpu", ROOT)
    tree.update_inventory(gpu, {"VGPU": {**DEFAULTS, "total": 4}})
    file = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    drawing = TreeDrawing(InspectedTree(ROOT, tree, {gpu: {"VGPU": 1}}))
    Console(file=file).print(drawing, crop=False)
    file.seek(0)
    assert file.read().splitlines()[1:] == [
        f"`-- gpu  {gpu}",
        f"    VGPU  {'#' * 5}{'.' * 15}  1 of 4",
    ]
