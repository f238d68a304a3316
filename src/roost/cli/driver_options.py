"""The options that choose a driver and the host that it describes."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import click

from roost.cli.option_file import KEY_VALUE
from roost.client.ownership.owner_names import DEFAULT_OWNER
from roost.client.tree_file.schema import PROVIDER_NAME_LENGTH_MAX
from roost.model.identifiers import canonical_uuid, is_uuid


class UuidType(click.ParamType[str]):
    """A uuid, in the spelling that servers use."""

    name = "UUID"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The uuid of a text."""
        if not is_uuid(str(value)):
            self.fail(f"{value}: that is no UUID; leave the option out for a new one", param, ctx)
        return canonical_uuid(str(value))


class HostNameType(click.ParamType[str]):
    """The name of a provider."""

    name = "NAME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name, which servers take if it is neither empty nor too long."""
        if not 0 < len(str(value)) <= PROVIDER_NAME_LENGTH_MAX:
            self.fail(
                f"{value!r}: a name has 1 to {PROVIDER_NAME_LENGTH_MAX} characters", param, ctx
            )
        return str(value)


_OPTIONS = (
    click.option(
        "--driver",
        "driver_name",
        metavar="NAME",
        help="What describes the host: `linux` (this machine), `libvirt` (as libvirt sees it), "
        "`file` (a tree file), one that `roost driver list` names, or package.module:Class.",
    ),
    click.option(
        "--option",
        "driver_options",
        type=KEY_VALUE,
        multiple=True,
        metavar="KEY=VALUE",
        help="An option of the driver, such as path=tree.yaml for `file`; may be repeated.",
    ),
    click.option(
        "--name",
        metavar="NAME",
        type=HostNameType(),
        default=socket.gethostname,
        show_default="this host's name",
        help="Name of the provider that stands for the host.",
    ),
    click.option(
        "--uuid",
        metavar="UUID",
        type=UuidType(),
        help="Its uuid. [default: that of the provider with this name, or a new one]",
    ),
)

owner_option = click.option(
    "--owner",
    metavar="NAME",
    default=DEFAULT_OWNER,
    show_default=True,
    help="Name to write under. The agent leaves alone what other owners wrote.",
)


def driver_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
