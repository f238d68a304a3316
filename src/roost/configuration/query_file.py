"""The file of `[roost]metrics_queries`: named questions of the operator, one on each line.

The lines are `name = <query>`. Whether a query is one, the API decides: it has the grammar.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from roost.configuration.regular_files import regular_file
from roost.model.errors import ConfigurationError

QUERIES_MAX = 500
NAME_LENGTH_MAX = 64
_FILE_BYTES_MAX = 2 * 2**20
# The name becomes the value of a label.
_NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{NAME_LENGTH_MAX - 1}}}\Z")
_SHOWN_MAX = 80


@dataclass(frozen=True, slots=True)
class QueryLine:
    """A query with its name, and the place where it stands."""

    name: str
    query: str
    place: str


def read_query_file(path: str | None) -> tuple[QueryLine, ...]:
    """The lines of a file, none without a file; `ConfigurationError` if they cannot be used."""
    if not path:
        return ()
    try:
        with open(path, "rb", opener=regular_file) as file:
            content = file.read(_FILE_BYTES_MAX + 1)
        text = content.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
        raise ConfigurationError(
            f"[roost]metrics_queries = {path} cannot be read: {why}. Correct the file or the option"
            "."
        ) from None
    if len(content) > _FILE_BYTES_MAX:
        raise ConfigurationError(
            f"[roost]metrics_queries = {path} has more than {_FILE_BYTES_MAX // 2**20} MB. Leave "
            "some queries out."
        )
    return tuple(parse_query_lines(text.splitlines(), path))


def parse_query_lines(lines: Iterable[str], path: str) -> Iterator[QueryLine]:
    """The queries of these lines; empty lines and lines that begin with `#` are comments.

    >>> next(parse_query_lines(["# small", "m1.small = ?resources=VCPU:1"], "queries.conf"))
    QueryLine(name='m1.small', query='?resources=VCPU:1', place='queries.conf, line 2')
    """
    places: dict[str, str] = {}
    for number, line in enumerate(map(str.strip, lines), 1):
        if not line or line.startswith("#"):
            continue
        place = f"{path}, line {number}"
        name, equals, query = (part.strip() for part in line.partition("="))
        if not equals or not query:
            raise ConfigurationError(
                f"{place}: {line[:_SHOWN_MAX]!r} is no named query. Write `name = <query>`, for "
                "instance `small = resources=VCPU:1`."
            )
        if not _NAME.match(name):
            raise ConfigurationError(
                f"{place}: {name[:_SHOWN_MAX]!r} cannot be a name. Begin it with a letter or "
                "digit, use letters, digits and . _ - only, and "
                f"{NAME_LENGTH_MAX} characters at most."
            )
        if name in places:
            raise ConfigurationError(
                f"{place}: the name {name} stands in {places[name]} already. Give each query a "
                "name of its own."
            )
        if len(places) == QUERIES_MAX:
            raise ConfigurationError(
                f"{place}: the file may have {QUERIES_MAX} queries, and has more. Leave some out."
            )
        places[name] = place
        yield QueryLine(name, query, place)
