"""The command `roost metrics-queries`: the file of `[roost]metrics_queries`, from flavours."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import click

from roost.cli.shared.command import command
from roost.cli.shared.connection import CloudSettings, cloud_options
from roost.cli.shared.parameters import WORD
from roost.cli.shared.terminal import echo_line
from roost.client.compute.compute_service import ComputeService
from roost.client.compute.nova_flavor import NovaFlavor
from roost.client.errors import NotConfigured
from roost.client.whole_file import replace_text
from roost.configuration.query_file import NAME_LENGTH_MAX, QUERIES_MAX
from roost.model.text import counted, printable, with_next

_HEAD = "# Written by `roost metrics-queries --from-flavors`: one query for each flavour."
_NO_NAME = re.compile(r"[^A-Za-z0-9._-]")
# The server reads the file under another account, and it has no secrets.
_MODE = 0o644


@command()
@click.option(
    "--from-flavors", is_flag=True, required=True, help="Take the queries from Nova's flavours."
)
@click.option(
    "--flavor",
    "patterns",
    type=WORD,
    metavar="NAME",
    multiple=True,
    help="Only flavours of this name; `*` stands for any characters. May be repeated.",
)
@click.option(
    "-f",
    "--file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Replace this file, in full or not at all. [default: print the lines]",
)
@cloud_options
def metrics_queries(
    *,
    from_flavors: bool,
    patterns: tuple[str, ...],
    file: Path | None,
    openstack: CloudSettings,
) -> None:
    """Write the named queries of `[roost]metrics_queries`, one for each flavour of Nova.

    The server then counts how many more of each flavour fit, as `roost_fits`. A query has the size
    of the flavour, its extra specs `resources:`, `trait:` and `group_policy`, and those for
    dedicated CPUs. A comment names extra specs that a query cannot have.

    \b
    Examples:
      roost metrics-queries --from-flavors
      roost metrics-queries --from-flavors --flavor 'gpu.*' --os-cloud mycloud
      roost metrics-queries --from-flavors -f /etc/placement/queries.conf && systemctl reload roost
    """
    del from_flavors
    flavors = ComputeService(openstack.find()).flavors()
    chosen = [one for one in flavors if _matches(one.name, patterns)]
    if not chosen:
        raise NotConfigured("No flavour has such a name: the file would have no query")
    if len(chosen) > QUERIES_MAX:
        raise NotConfigured(
            with_next(
                f"The server takes {QUERIES_MAX} queries, and there are "
                f"{counted(len(chosen), 'flavour')}. Choose some.",
                "roost metrics-queries --from-flavors --flavor 'NAME*'",
            )
        )
    lines = [_HEAD, *_lines(sorted(chosen, key=lambda one: one.name))]
    if file is None:
        for line in lines:
            echo_line(line)
        return
    replace_text(file, "".join(f"{line}\n" for line in lines), mode=_MODE)
    echo_line(f"{file}: {counted(len(chosen), 'flavour')}", err=True)


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)


def _lines(flavors: Iterable[NovaFlavor]) -> Iterator[str]:
    names: set[str] = set()
    for flavor in flavors:
        name = _free_name(_NO_NAME.sub("-", flavor.name), names)
        names.add(name)
        if name != flavor.name:
            yield f"# flavour {printable(flavor.name)}"
        if ignored := flavor.ignored_specs():
            yield f"# {name}: not in the query: {', '.join(map(printable, ignored))}"
        yield f"{name} = {flavor.query()}"


def _free_name(name: str, taken: set[str]) -> str:
    """A name that the file may have, and that no other query has.

    >>> _free_name("-x", set()), _free_name("small", {"small", "small-2"})
    ('x', 'small-3')
    """
    first = name.lstrip("._-")[:NAME_LENGTH_MAX] or "flavour"
    found, number = first, 1
    while found in taken:
        number += 1
        end = f"-{number}"
        found = first[: NAME_LENGTH_MAX - len(end)] + end
    return found
