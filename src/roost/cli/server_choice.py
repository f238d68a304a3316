"""The server of a configured command: an address beats what lower places say of another one.

An address is a URL or a cloud. The places are the command line, the command's own variables, the
variables of all clients (`ROOST_URL`, `OS_CLOUD`, ...) and the file, in this order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from enum import IntEnum
from typing import Any

import click
from click.core import ParameterSource

from roost.cli.connection import ConnectionSettings
from roost.client.transport.connecting import names_a_server


class OptionPlace(IntEnum):
    """Where an option may stand; the lowest number takes precedence."""

    COMMAND_LINE = 0
    OWN_VARIABLE = 1
    CLIENT_VARIABLE = 2
    FILE = 3
    NOWHERE = 4


_PLACES = {
    ParameterSource.COMMANDLINE: OptionPlace.COMMAND_LINE,
    ParameterSource.ENVIRONMENT: OptionPlace.OWN_VARIABLE,
    ParameterSource.DEFAULT_MAP: OptionPlace.FILE,
}
_ADDRESSES = ("url", "cloud")
_VARIABLES = ("ROOST_URL", "OS_CLOUD", "OS_AUTH_URL", "OS_AUTH_TYPE", "OS_ENDPOINT")
# A token and a region belong to an address.
_BELONGING = ("token", "token_file", "region")


def options_out_of_force(ctx: click.Context, environ: Mapping[str, str]) -> list[str]:
    """The options about the server that an address in a place above theirs puts out of force."""
    places = {
        name: _PLACES.get(source, OptionPlace.NOWHERE)
        for name in (*_ADDRESSES, *_BELONGING)
        if (source := ctx.get_parameter_source(name)) is not None
    }
    return out_of_force(places, environ)


def without(connection: ConnectionSettings, names: Iterable[str]) -> ConnectionSettings:
    """The connection without these options, which leaves them to the variables of clients."""
    dropped: dict[str, Any] = dict.fromkeys(names)
    return replace(connection, **dropped)


def variable_of_server(connection: ConnectionSettings, environ: Mapping[str, str]) -> str | None:
    """The variable of all clients that names the server; `None` if an option does, or nothing."""
    if connection.url is not None or connection.cloud is not None:
        return None
    # A token belongs to an address, and never goes to a cloud.
    has_token = connection.token is not None or connection.token_file is not None
    names = _VARIABLES[:1] if has_token else _VARIABLES
    return next((name for name in names if environ.get(name)), None)


def out_of_force(places: Mapping[str, OptionPlace], environ: Mapping[str, str]) -> list[str]:
    """The options that a place above theirs puts out of force.

    >>> out_of_force({"url": OptionPlace.COMMAND_LINE, "token": OptionPlace.FILE}, {})
    ['token']
    >>> out_of_force({"url": OptionPlace.FILE, "token": OptionPlace.OWN_VARIABLE}, {})
    []
    >>> out_of_force({"token": OptionPlace.COMMAND_LINE, "token_file": OptionPlace.FILE}, {})
    ['token_file']
    """
    address = min(places.get(name, OptionPlace.NOWHERE) for name in _ADDRESSES)
    if names_a_server(environ):
        address = min(address, OptionPlace.CLIENT_VARIABLE)
    dropped = _below(places, address)
    token, file = (places.get(name, OptionPlace.NOWHERE) for name in ("token", "token_file"))
    if environ.get("ROOST_TOKEN"):
        dropped += _below({"token": token, "token_file": file}, OptionPlace.CLIENT_VARIABLE)
    dropped += _below({"token": token}, file) + _below({"token_file": file}, token)
    return list(dict.fromkeys(dropped))


def _below(places: Mapping[str, OptionPlace], place: OptionPlace) -> list[str]:
    """The options that stand in a lower place than this one."""
    return [name for name, its in places.items() if OptionPlace.NOWHERE > its > place]
