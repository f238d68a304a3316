"""What a command prints: a table or a drawing for people; JSON, YAML, CSV or names for programs."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import wraps
from itertools import zip_longest
from typing import Any, NamedTuple, TypeAlias

import click
import yaml
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.text import Text

from roost.cli.shared.exit_status import WrongUsage
from roost.cli.shared.parameters import WORD, adding
from roost.cli.shared.terminal import echo_line, output_console, unbroken
from roost.client.errors import PlacementError
from roost.client.outcome import Outcome, outcome_of
from roost.model.errors import OperatorError
from roost.model.text import (
    counted,
    done_or_planned,
    has_next,
    nearest_names,
    plain_number,
    printable,
    with_next,
    with_separators,
)

TableCell: TypeAlias = Any
"""A text, a number, a list of texts, amounts by name, a rich `Text`, or `None` for nothing.

People see numbers with separators, programs without. So a number that is no amount is a text.
"""

_ShownCell: TypeAlias = str | Text
"""A cell as a terminal shows it."""

_GAP = 2
_NOTHING = (2, 0.0, "")
_YAML_STYLE: dict[str, Any] = {"sort_keys": False, "default_flow_style": False}
_WIDTH_MIN = 10
"""The columns below which no cell is folded; a narrower terminal breaks the lines itself."""


class TableColumn(NamedTuple):
    """A column: its title, and how it behaves in a narrow terminal."""

    title: str
    # Numbers stand at the right.
    right: bool = False
    # A narrow terminal shows the table without this column; the last one goes first.
    optional: bool = False

    @property
    def key(self) -> str:
        """The name of the column in JSON, YAML and CSV.

        >>> TableColumn("ALLOCATION RATIO").key
        'allocation_ratio'
        """
        return self.title.lower().replace(" ", "_")


def columns_of(titles: str) -> tuple[TableColumn, ...]:
    """Columns with these titles: `>` begins one of numbers, `?` ends one that is optional.

    >>> columns_of("NAME, >USED?")[1]
    TableColumn(title='USED', right=True, optional=True)
    """
    return tuple(
        TableColumn(title.removeprefix(">").removesuffix("?"), title[:1] == ">", title[-1:] == "?")
        for title in titles.split(", ")
    )


@dataclass(frozen=True, slots=True)
class Table:
    """Rows below the titles of their columns."""

    columns: Sequence[TableColumn]
    rows: Sequence[Sequence[TableCell]]
    has_titles: bool = True

    def index(self, name: str) -> int:
        """The place of a column, by its title or key in any case; an error names all columns."""
        wanted = name.strip().casefold().replace("-", "_").replace(" ", "_")
        keys = [column.key for column in self.columns]
        if wanted and wanted in keys:
            return keys.index(wanted)
        near = nearest_names(wanted, filter(None, keys))
        hint = f" Near it: {', '.join(near)}." if near else ""
        raise WrongUsage(
            f"There is no column {printable(name)}.{hint} The columns are "
            f"{', '.join(filter(None, keys))}."
        )

    def chosen(self, names: Sequence[str]) -> Table:
        """The table with these columns only, in this order."""
        places = [self.index(name) for name in names]
        # A column that a person asks for is never left out.
        columns = [self.columns[place]._replace(optional=False) for place in places]
        return replace(
            self, columns=columns, rows=[[row[at] for at in places] for row in self.rows]
        )

    def order(self, sort: Sequence[str]) -> list[int]:
        """The numbers of the rows, sorted by columns; `:desc` behind a name turns its order."""
        order = list(range(len(self.rows)))
        for wish in reversed(sort):
            name, _, direction = wish.partition(":")
            if direction not in ("", "asc", "desc"):
                raise WrongUsage(f"--sort {printable(wish)}: write COLUMN, or COLUMN:desc.")
            cells = [_sortable(row[self.index(name)]) for row in self.rows]
            order.sort(key=cells.__getitem__, reverse=direction == "desc")
            # A row without a value comes last in both directions.
            order = [at for at in order if cells[at] != _NOTHING] + [
                at for at in order if cells[at] == _NOTHING
            ]
        return order

    def names(self) -> list[str]:
        """The first column, each text once: what names the rows."""
        cells = (printable(_joined(row[0], " ", nothing="")) for row in self.rows)
        return list(dict.fromkeys(filter(None, cells)))

    def as_json(self) -> list[dict[str, Any]]:
        """Each row as an object."""
        keys = [column.key for column in self.columns]
        return [dict(zip(keys, map(_plain, row), strict=True)) for row in self.rows]

    def text_rows(self) -> Iterator[list[str]]:
        """The cells as texts for a program, titles first; a list is joined by spaces."""
        if self.has_titles:
            yield [column.key for column in self.columns]
        for row in self.rows:
            yield [printable(_joined(cell, " ", nothing="")) for cell in row]

    def lines(self) -> Iterator[str]:
        """The lines for a program or a file: each row whole, titles first."""
        cells = self._shown()
        widths = _natural_widths(cells)
        for row in cells:
            yield str(_line(row, widths, self.columns)).rstrip()

    def fitting(self, width: int) -> tuple[Table, list[str]]:
        """The table without the optional columns that do not fit, and the titles of these."""
        widths = _natural_widths(self._shown())
        kept = list(range(len(self.columns)))
        while _total([widths[index] for index in kept]) > width:
            last = next((index for index in reversed(kept) if self.columns[index].optional), None)
            if last is None:
                break
            kept.remove(last)
        if len(kept) == len(self.columns):
            return self, []
        left_out = [column.title for index, column in enumerate(self.columns) if index not in kept]
        columns = [self.columns[index] for index in kept]
        rows = [[row[index] for index in kept] for row in self.rows]
        return replace(self, columns=columns, rows=rows), left_out

    def _shown(self) -> list[list[_ShownCell]]:
        """The titles and all rows."""
        titles: list[_ShownCell] = [column.title for column in self.columns]
        return [*([titles] if self.has_titles else []), *map(_shown_cells, self.rows)]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        fitting, left_out = self.fitting(options.max_width)
        cells = fitting._shown()
        if self.has_titles:
            cells[0] = [Text(column.title, "bold") for column in fitting.columns]
        widths = _shrunk(_natural_widths(cells), options.max_width)
        for row in cells:
            yield from _row_lines(row, widths, fitting.columns, console)
        # A column without a title has bars, and what they show is in another column.
        named = [title for title in left_out if title]
        if named:
            yield Text(f"Too narrow for {', '.join(named)}; --output wide has them.", style="dim")


@dataclass(frozen=True, slots=True)
class Facts:
    """A line for each name with its value; a long value is folded beside its name."""

    facts: Sequence[tuple[str, TableCell]]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        name_width = max(len(name) for name, _ in self.facts)
        widths = [name_width, max(_WIDTH_MIN, options.max_width - name_width - _GAP)]
        columns = (TableColumn(""), TableColumn(""))
        for name, value in self.facts:
            cells = [Text(name, style="bold"), *_shown_cells([value])]
            yield from _row_lines(cells, widths, columns, console)


def _row_lines(
    row: Sequence[_ShownCell],
    widths: Sequence[int],
    columns: Sequence[TableColumn],
    console: Console,
) -> Iterator[Text]:
    """The lines of a row on a terminal."""
    folded = [
        [cell] if _width(cell) <= width else _folded(cell, width, console)
        for cell, width in zip(row, widths, strict=True)
    ]
    for parts in zip_longest(*folded, fillvalue=""):
        line = _line(parts, widths, columns)
        text = line if isinstance(line, Text) else Text(line)
        text.rstrip()
        text.no_wrap, text.overflow = True, "ignore"
        yield text


def _shown_cells(row: Sequence[TableCell]) -> list[_ShownCell]:
    return [
        cell
        if isinstance(cell, Text)
        else printable(_joined(cell, ", ", nothing="-", number=with_separators))
        for cell in row
    ]


def _joined(
    cell: TableCell,
    separator: str,
    *,
    nothing: str,
    number: Callable[[int], str] = str,
) -> str:
    """A cell as a text.

    >>> _joined(["a", "b"], ", ", nothing="-"), _joined(None, ", ", nothing="-")
    ('a, b', '-')
    >>> _joined(1.50, ", ", nothing="-"), _joined(True, ", ", nothing="-")
    ('1.5', 'yes')
    >>> _joined({"VCPU": 4, "DISK_GB": 1000}, " ", nothing="-", number=with_separators)
    'VCPU=4 DISK_GB=1,000'
    """
    if isinstance(cell, Text):
        return cell.plain
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, int):
        return number(cell)
    if isinstance(cell, float):
        return plain_number(cell)
    if isinstance(cell, Mapping):
        cell = [f"{name}={number(amount)}" for name, amount in cell.items()]
    if isinstance(cell, (list, tuple)):
        cell = separator.join(map(str, cell))
    return nothing if cell is None or cell == "" else str(cell)


def _sortable(cell: TableCell) -> tuple[int, float, str]:
    """What a cell is sorted by: numbers first, then texts in any case, then nothing."""
    if isinstance(cell, (int, float)):
        return 0, cell, ""
    text = _joined(cell, " ", nothing="")
    return (1, 0, text.casefold()) if text else _NOTHING


def _plain(cell: TableCell) -> Any:
    return cell.plain if isinstance(cell, Text) else cell


def _natural_widths(cells: Sequence[Sequence[_ShownCell]]) -> list[int]:
    return [max(map(_width, column), default=0) for column in zip(*cells, strict=True)]


def _width(cell: _ShownCell) -> int:
    if isinstance(cell, Text):
        return cell_len(cell.plain)
    return len(cell) if cell.isascii() else cell_len(cell)


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * (len(widths) - 1)


def _shrunk(widths: list[int], width: int) -> list[int]:
    """The widths after the widest columns have given up what the terminal lacks.

    >>> _shrunk([30, 5, 12], 40)
    [19, 5, 12]
    """
    widths = widths.copy()
    while widths and (excess := _total(widths) - width) > 0:
        widest = max(range(len(widths)), key=widths.__getitem__)
        others = [other for index, other in enumerate(widths) if index != widest]
        floor = max(_WIDTH_MIN, *others) if others else _WIDTH_MIN
        floor = min(floor, widths[widest] - 1)
        if widths[widest] <= _WIDTH_MIN:
            break
        widths[widest] = max(widths[widest] - excess, floor, _WIDTH_MIN)
    return widths


def _folded(cell: _ShownCell, width: int, console: Console) -> list[Text]:
    text = cell if isinstance(cell, Text) else Text(cell)
    return list(text.wrap(console, width, overflow="fold"))


def _line(
    cells: Sequence[_ShownCell], widths: Sequence[int], columns: Sequence[TableColumn]
) -> _ShownCell:
    """One line; a text with styles only if a cell has one, because these are slow."""
    parts: list[_ShownCell] = []
    for index, (cell, width, column) in enumerate(zip(cells, widths, columns, strict=True)):
        space = " " * (width - _width(cell))
        parts += [" " * _GAP if index else "", *((space, cell) if column.right else (cell, space))]
    if all(isinstance(part, str) for part in parts):
        return "".join(map(str, parts))
    return Text.assemble(*parts)


class FormName(StrEnum):
    """The names of the forms."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    CSV = "csv"
    NAME = "name"


@dataclass(frozen=True, slots=True)
class OutputForm:
    """How a command prints its result: the form, and which part of the table in which order."""

    name: FormName = FormName.TABLE
    columns: tuple[str, ...] = ()
    sort: tuple[str, ...] = ()
    titles: bool = True

    @property
    def is_for_people(self) -> bool:
        """Whether a person reads it, and no program."""
        return self.name in (FormName.TABLE, FormName.WIDE)

    @property
    def is_table(self) -> bool:
        """Whether it has the rows of the table, so that a command needs all texts in them."""
        return bool(self.columns) or self.name not in (FormName.JSON, FormName.YAML)


@dataclass(frozen=True, slots=True)
class Output:
    """One result in all its forms."""

    table: Table
    # What JSON and YAML show.
    value: Any
    # What a person sees instead of the table.
    drawing: RenderableType | None = None
    # Lines for standard error, behind the result.
    notes: Sequence[str] = ()
    # The exit status of the command.
    status: int = 0
    # What `--output name` prints; `None` for the first column of the table.
    names: Sequence[str] | None = None

    @classmethod
    def of(cls, table: Table) -> Output:
        """A table whose rows are also the objects of JSON and YAML."""
        return cls(table, table.as_json())

    @property
    def picture(self) -> RenderableType:
        """What a person sees."""
        return self.table if self.drawing is None else self.drawing

    def arranged(self, form: OutputForm) -> Output:
        """The result with the columns and the order that the form asks for.

        Then the table takes the place of a drawing. With columns, JSON and YAML have its rows.
        """
        if not (form.columns or form.sort or not form.titles):
            return self
        order, value = self.table.order(form.sort), self.value
        table = replace(
            self.table, rows=[self.table.rows[at] for at in order], has_titles=form.titles
        )
        if form.columns:
            table = table.chosen(form.columns)
            value = table.as_json()
        elif form.sort and isinstance(value, list) and len(value) == len(order):
            value = [value[at] for at in order]
        elif form.sort and not form.is_table:
            raise WrongUsage(
                f"--sort orders rows, and --output {form.name} has none here. Give columns with -c."
            )
        names = self.names
        if names is not None and len(names) == len(order):
            names = [names[at] for at in order]
        # Nothing is drawn if there is no row, and then the drawing is what says so.
        drawing = None if table.rows else self.drawing
        return replace(self, table=table, value=value, drawing=drawing, names=names)

    def text(self, form: OutputForm) -> str:
        """The output for a program."""
        if form.name is FormName.JSON:
            return json.dumps(self.value, indent=2)
        if form.name is FormName.YAML:
            return str(yaml.safe_dump(self.value, **_YAML_STYLE)).rstrip()
        if form.name is FormName.NAME:
            return "\n".join(
                self.table.names() if self.names is None else map(printable, self.names)
            )
        file = io.StringIO()
        csv.writer(file, lineterminator="\n").writerows(self.table.text_rows())
        return file.getvalue().rstrip("\n")


def print_output(output: Output, form: OutputForm) -> None:
    """Print a result in this form; colours and folded lines are for terminals only."""
    output = output.arranged(form)
    if not form.is_for_people:
        if (text := output.text(form)) or form.name is not FormName.NAME:
            click.echo(text)
        return
    console = output_console(is_wide=form.name is FormName.WIDE)
    if output.drawing is not None or console.is_terminal:
        console.print(output.picture, crop=False)
    else:
        for line in output.table.lines():
            click.echo(line)


def output_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of the output to a command, which gets them as the argument `output`."""

    @wraps(command)
    def with_output(
        *,
        output: str | None,
        as_json: bool,
        columns: tuple[str, ...],
        sort: tuple[str, ...],
        no_headers: bool,
        **arguments: Any,
    ) -> Any:
        if as_json and output not in (None, "json"):
            raise click.UsageError(f"--json and --output {output} contradict each other.")
        name = FormName.JSON if as_json else FormName(output or "table")
        names = tuple(_split(columns))
        form = OutputForm(name, names, tuple(_split(sort)), titles=not no_headers)
        try:
            return command(output=form, **arguments)
        except PlacementError as error:
            if has_next(str(error)):
                raise
            path = click.get_current_context().command_path
            raise OperatorError(with_next(str(error), f"{path} --help")) from error

    wrapped: Callable[..., Any] = adding(
        click.option(
            "-o",
            "--output",
            type=click.Choice([name.value for name in FormName]),
            help="Form of the output. [default: table]",
        ),
        click.option("--json", "as_json", is_flag=True, help="The same as --output json."),
        click.option(
            "-c",
            "--column",
            "columns",
            type=WORD,
            metavar="COLUMN",
            multiple=True,
            help="Only this column. May be repeated.",
        ),
        click.option(
            "--sort",
            type=WORD,
            metavar="COLUMN[:desc]",
            multiple=True,
            help="Sort the rows by this column. May be repeated.",
        ),
        click.option("--no-headers", is_flag=True, help="Leave out the titles of the columns."),
    )(with_output)
    return wrapped


def _split(values: Iterable[str]) -> Iterator[str]:
    for value in values:
        yield from value.split(",")


dry_run_option = click.option(
    "--dry-run", is_flag=True, help="Print what would change, and change nothing."
)
_COLUMNS = (TableColumn("CHANGE"),)


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """One of several changes: of which thing, as JSON, and the call that makes it."""

    name: str
    value: Any
    make: Callable[[], object]
    # What people read behind the name.
    remark: str = ""

    def line(self, verb: str) -> str:
        """The change in a line."""
        return f"{self.name}{f' ({self.remark})' if self.remark else ''}: {verb}"


def make_changes(
    word: str, planned: Sequence[PlannedChange], form: OutputForm, *, dry_run: bool
) -> None:
    """Make changes one after another, and print them; `word` says what happens to each thing.

    An error or Ctrl-C ends them. Then the changes made before it are printed, and the rest named.
    """
    made = 0
    try:
        for one in planned:
            if not dry_run:
                one.make()
            made += 1
    except BaseException as error:
        if made:
            _print_planned(word, planned[:made], form, dry_run=dry_run)
        _name_the_rest(word, planned[made:], error)
        raise
    _print_planned(word, planned, form, dry_run=dry_run)


@contextmanager
def telling_failure(name: str, word: str) -> Iterator[None]:
    """Say of a change that an error ends: it is not made, or this is unknown."""
    try:
        yield
    except BaseException as error:
        _name_the_rest(word, [PlannedChange(name, None, lambda: None)], error)
        raise


def _print_planned(
    word: str, changes: Sequence[PlannedChange], form: OutputForm, *, dry_run: bool
) -> None:
    verb = done_or_planned(word, planned=dry_run)
    lines = [one.line(verb) for one in changes]
    names = [one.name for one in changes]
    print_changes(lines, [one.value for one in changes], form, dry_run=dry_run, names=names)


def _name_the_rest(word: str, rest: Sequence[PlannedChange], error: BaseException) -> None:
    """Say of each thing that it is as before, or that this is unknown of the first one."""
    for number, one in enumerate(rest):
        is_unknown = number == 0 and outcome_of(error) is Outcome.UNKNOWN
        echo_line(one.line(f"{'perhaps' if is_unknown else 'not'} {word}"), err=True)


def print_changes(
    lines: Sequence[str],
    changes: Sequence[Any],
    form: OutputForm,
    *,
    dry_run: bool,
    names: Sequence[str] | None = None,
) -> None:
    """Print changes as lines, or as one value for a program; `names` are of what changes."""
    value = {"dry_run": dry_run, "changes": list(changes)}
    table = Table(_COLUMNS, [[line] for line in lines])
    if lines or not form.is_for_people:
        drawing = Group(*map(unbroken, lines))
        print_output(Output(table, value, drawing, names=names), form)
    if form.is_for_people:
        made = done_or_planned("made", planned=dry_run)
        echo_line(f"{counted(len(lines), 'change')} {made}", err=True)
