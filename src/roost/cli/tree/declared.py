"""Printing a declaration: a drawing of its trees, or a tree file."""

from __future__ import annotations

from enum import StrEnum

import click

from roost.cli.terminal import output_console
from roost.cli.tree.drawing import TreeDrawing
from roost.client.declaration import Declaration
from roost.client.drivers.offline import declared_tree
from roost.client.tree_file import render_tree_file


class DeclarationForm(StrEnum):
    """The forms of a declaration: a drawing, or a tree file in YAML or JSON."""

    DRAWING = "drawing"
    YAML = "yaml"
    JSON = "json"


def print_declaration(declaration: Declaration, form: DeclarationForm, owner: str | None) -> None:
    """Print a declaration; a tree file names the owner that would write it."""
    if form is not DeclarationForm.DRAWING:
        as_json = form is DeclarationForm.JSON
        click.echo(render_tree_file(declaration, owner, as_json=as_json), nl=False)
        return
    console = output_console()
    for root in declaration.roots:
        drawn = declared_tree(declaration, root)
        known = {provider.uuid for provider in declaration.providers}
        unknown = frozenset(uuid for uuid in drawn.tree.get_provider_uuids() if uuid not in known)
        console.print(TreeDrawing(drawn, details=True, unknown_uuids=unknown), crop=False)


def form_of(output: str | None, *, as_json: bool) -> DeclarationForm:
    """The form that `--output` and `--json` ask for."""
    if as_json and output not in (None, DeclarationForm.JSON):
        raise click.UsageError(f"--json and --output {output} contradict each other.")
    if as_json:
        return DeclarationForm.JSON
    return DeclarationForm(output or DeclarationForm.DRAWING)


form_option = click.option(
    "-o",
    "--output",
    type=click.Choice([form.value for form in DeclarationForm]),
    help="With --offline: a drawing, or a tree file in YAML or JSON. [default: drawing]",
)
