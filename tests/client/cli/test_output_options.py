"""The options of every output: its form, its columns, their order, and its titles."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

import pytest
import yaml

from roost.cli.shared.output import Table, columns_of
from support.pty_command import PtyCommand
from support.roost_command import all_commands, roost
from support.stubs.word_stub import WordStub

LIST = ("provider", "list")


@pytest.fixture(autouse=True)
def stub(monkeypatch: pytest.MonkeyPatch) -> Iterator[WordStub]:
    """A server with the providers provider-1, its child provider-2, and provider-3."""
    with WordStub() as server:
        monkeypatch.setenv("ROOST_URL", server.url)
        yield server


def test_columns_are_chosen_by_title_or_key_in_their_order() -> None:
    lines = roost(*LIST, "-c", "generation", "-c", "NAME").lines
    assert lines[0].split() == ["GENERATION", "NAME"]
    assert roost(*LIST, "-c", "Generation,name").lines == lines


def test_chosen_columns_are_those_of_every_form() -> None:
    chosen = (*LIST, "-c", "name", "-c", "parent")
    table = csv.DictReader(io.StringIO(roost(*chosen, "-o", "csv").out))
    of_csv = [{key: value or None for key, value in row.items()} for row in table]
    assert of_csv == roost(*chosen, "--json").json
    assert of_csv == yaml.safe_load(roost(*chosen, "-o", "yaml").out)
    assert {frozenset(row) for row in of_csv} == {frozenset({"name", "parent"})}


def test_an_unknown_column_is_wrong_usage_and_names_those_that_there_are() -> None:
    refused = roost(*LIST, "-c", "nme")
    assert (refused.status, refused.out) == (2, "")
    assert "There is no column nme. Near it: name." in refused.err
    assert "name, uuid, generation, parent, root" in refused.err


def test_rows_are_sorted_by_columns_with_nothing_last() -> None:
    names = roost(*LIST, "--sort", "name:desc", "-o", "name").lines
    assert names == sorted(names, reverse=True)
    parents = [row["parent"] for row in roost(*LIST, "--sort", "parent", "--json").json]
    assert parents[0] is not None
    assert parents[-1] is None


def test_sorted_json_keeps_its_shape() -> None:
    plain, turned = roost(*LIST, "--json").json, roost(*LIST, "--json", "--sort", "name:desc").json
    assert turned == plain[::-1]


def test_json_without_rows_is_not_sorted_but_says_how() -> None:
    refused = roost("provider", "show", "provider-1", "--json", "--sort", "used")
    assert refused.status == 2
    assert "Give columns with -c." in refused.err


def test_numbers_are_sorted_as_numbers() -> None:
    table = Table(columns_of("NAME, >USED"), [["a", 10], ["b", 9], ["c", None], ["d", 100]])
    assert table.order(["used"]) == [1, 0, 3, 2]
    assert table.order(["used:desc"]) == [3, 0, 1, 2]


@pytest.mark.parametrize("form", ["table", "wide", "csv"])
def test_titles_can_be_left_out(form: str) -> None:
    whole, rows = roost(*LIST, "-o", form).lines, roost(*LIST, "-o", form, "--no-headers").lines
    assert len(rows) == len(whole) - 1
    assert "NAME" not in rows[0].upper().split()


def test_names_are_one_in_a_line_and_an_empty_list_prints_none() -> None:
    assert roost(*LIST, "-o", "name").lines == ["provider-1", "provider-2", "provider-3"]
    assert roost(*LIST, "--name", "no*", "-o", "name").out == ""


def test_a_choice_of_columns_shows_the_table_in_place_of_a_drawing() -> None:
    shown = roost("provider", "show", "provider-1", "-c", "resource class", "-c", "total")
    assert shown.lines[0].split() == ["RESOURCE", "CLASS", "TOTAL"]


def test_a_wide_table_has_all_columns_in_a_narrow_terminal(stub: WordStub) -> None:
    with PtyCommand(*LIST, "-o", "wide", ROOST_URL=stub.url, COLUMNS="60") as terminal:
        shown = terminal.read_until(lambda seen: b"ROOT" in seen)
        assert terminal.ended() == 0
    assert b"Too narrow" not in shown


def test_every_command_that_has_forms_has_all_options_of_them() -> None:
    options = {"output", "as_json", "columns", "sort", "no_headers"}
    for name, command in all_commands().items():
        own = {str(option.name) for option in command.params}
        if name.endswith(" list"):
            assert options <= own, name
