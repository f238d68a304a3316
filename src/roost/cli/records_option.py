"""The option `--records`: the directory with the records of what owners wrote."""

from __future__ import annotations

from pathlib import Path

import click

records_option = click.option(
    "--records",
    metavar="DIRECTORY",
    type=click.Path(path_type=Path, file_okay=False),
    help="Directory with the records of what owners wrote. [default: $STATE_DIRECTORY, or a "
    "directory of the user such as ~/.local/state/roost/owners]",
)
"""Adds `--records`; the command gets the directory as `records`, or `None`."""
