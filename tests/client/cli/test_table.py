"""Tables of commands: which columns a terminal shows, and what programs get."""

from __future__ import annotations

import csv
import io
import json

import pytest
import yaml
from rich.console import Console

from roost.cli.shared.output import Facts, FormName, Output, OutputForm, Table, TableColumn

UUID = "5a1cbbc0-7f0e-4b6c-9a53-000000000001"
TABLE = Table(
    [
        TableColumn("NAME"),
        TableColumn("UUID"),
        TableColumn("USED", right=True),
        TableColumn("TRAITS", optional=True),
        TableColumn("PARENT", optional=True),
    ],
    [
        ["compute-1", UUID, 7, ["CUSTOM_A", "CUSTOM_B"], None],
        ["机架", UUID, 12000, [], UUID],
    ],
)


def shown(table: Table, width: int, *, styles: bool = False) -> list[str]:
    console = Console(width=width, color_system="standard" if styles else None, force_terminal=True)
    with console.capture() as capture:
        console.print(table, crop=False)
    return [line.rstrip() for line in capture.get().splitlines()]


def test_a_wide_terminal_shows_every_column() -> None:
    assert shown(TABLE, 200) == [
        f"NAME       {'UUID':36}    USED  {'TRAITS':18}  PARENT",
        f"compute-1  {UUID}       7  CUSTOM_A, CUSTOM_B  -",
        f"机架       {UUID}  12,000  {'-':18}  {UUID}",
    ]


def test_a_narrow_terminal_shows_the_table_without_its_last_optional_columns() -> None:
    assert shown(TABLE, 80)[0].split() == ["NAME", "UUID", "USED", "TRAITS"]
    assert shown(TABLE, 60)[0].split() == ["NAME", "UUID", "USED"]
    assert shown(TABLE, 80)[-1] == "Too narrow for PARENT; --output wide has them."
    assert shown(TABLE, 60)[-1] == "Too narrow for TRAITS, PARENT; --output wide has them."


@pytest.mark.parametrize("width", [30, 40, 60, 80])
def test_no_line_is_longer_than_the_terminal(width: int) -> None:
    long = Table(
        [TableColumn("NAME"), TableColumn("USED", right=True), TableColumn("WORDS")],
        [["host" * 30, 7, "Several words that a line is broken between. " * 3]],
    )
    lines = shown(long, width)
    assert max(map(len, lines)) <= width
    names = "".join(line.split("  ")[0] for line in lines[1:] if line[0] != " ")
    assert names == "host" * 30


def test_a_file_gets_each_row_as_one_line_with_all_columns() -> None:
    titles, _, last = TABLE.lines()
    assert titles.split() == ["NAME", "UUID", "USED", "TRAITS", "PARENT"]
    assert last.endswith(UUID)


def test_only_titles_and_marked_cells_have_a_style() -> None:
    titles, first, _ = shown(TABLE, 200, styles=True)
    assert "\x1b[1m" in titles
    assert "\x1b" not in first


def test_control_characters_are_spelt_out_in_every_form() -> None:
    table = Table([TableColumn("NAME")], [["a\x1b[31m\nb"]])
    output = Output.of(table)
    assert shown(table, 80)[1:] == [r"a\x1b[31m\nb"]
    assert list(table.lines())[1:] == [r"a\x1b[31m\nb"]
    for name in (FormName.JSON, FormName.YAML, FormName.CSV, FormName.NAME):
        assert "\x1b" not in output.text(OutputForm(name))


def test_programs_read_the_same_values_in_each_form() -> None:
    output = Output.of(TABLE)
    rows = [
        {
            "name": "compute-1",
            "uuid": UUID,
            "used": 7,
            "traits": ["CUSTOM_A", "CUSTOM_B"],
            "parent": None,
        },
        {"name": "机架", "uuid": UUID, "used": 12000, "traits": [], "parent": UUID},
    ]
    assert json.loads(output.text(OutputForm(FormName.JSON))) == rows
    assert yaml.safe_load(output.text(OutputForm(FormName.YAML))) == rows
    assert list(csv.reader(io.StringIO(output.text(OutputForm(FormName.CSV))))) == [
        ["name", "uuid", "used", "traits", "parent"],
        ["compute-1", UUID, "7", "CUSTOM_A CUSTOM_B", ""],
        ["机架", UUID, "12000", "", UUID],
    ]


def test_a_long_fact_is_folded_beside_its_name() -> None:
    console = Console(width=30, force_terminal=True, color_system=None)
    with console.capture() as capture:
        console.print(Facts([("name", "host"), ("traits", ["CUSTOM_A", "CUSTOM_B", "CUSTOM_C"])]))
    assert capture.get().splitlines() == [
        "name    host",
        "traits  CUSTOM_A, CUSTOM_B,",
        "        CUSTOM_C",
    ]


def test_a_table_without_rows_has_its_titles() -> None:
    assert shown(Table([TableColumn("NAME")], []), 80) == ["NAME"]
