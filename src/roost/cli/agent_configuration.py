"""The configuration of `roost agent`: what is in force, and where it stands."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from roost.cli.configured_command import (
    COMMAND_LINE,
    DEFAULT,
    KEY_VALUE,
    file_in_force,
    is_given,
    key_of,
    naming_origin,
    option_named,
    origin,
)
from roost.client.drivers.driver import DeclaringDriver, Driver
from roost.client.drivers.registry import load_driver
from roost.client.errors import NotConfigured
from roost.model.secrets import HIDDEN, shown_value
from roost.model.text import plain_number

DEFAULT_FILE = Path("/etc/roost/agent.yaml")

# Text that YAML takes for text without quotes.
_PLAIN = re.compile(r"[A-Za-z/][A-Za-z0-9_./:@-]*[A-Za-z0-9_/]")
# These belong to the ownership of a declaring driver.
_OF_OWNERS = ("owner", "adopt", "accept_loss", "missing_reports", "missing_minutes")


@dataclass(frozen=True, slots=True)
class AgentOptions:
    """The values of the options, but for those of the connection and of the driver."""

    name: str
    uuid: str | None
    interval: float
    owner: str
    records: Path | None
    adopt: bool
    accept_loss: bool
    missing_reports: int
    missing_minutes: float
    metrics_file: Path | None
    once: bool
    dry_run: bool
    offline: bool
    output: str | None
    as_json: bool
    verbose: bool
    debug: bool


@dataclass(frozen=True, slots=True)
class GivenOption:
    """An option of the driver, and where it stands."""

    key: str
    value: str
    origin: str


@dataclass(frozen=True, slots=True)
class AgentSetting:
    """An option with its value and its place; a secret is hidden."""

    name: str
    value: Any
    origin: str
    in_force: bool = True


class AgentConfiguration:
    """The options of a context, with their origins."""

    def __init__(self, ctx: click.Context, out_of_force: Collection[str] = ()) -> None:
        self._ctx = ctx
        self._out_of_force = out_of_force

    @property
    def file(self) -> str | None:
        """The configuration file in force."""
        file = file_in_force(self._ctx)
        return None if file is None else file.path

    @property
    def driver_options(self) -> list[GivenOption]:
        """The options of the driver in force, from all places.

        A place that names another driver has options of that driver, so these are left out.
        """
        in_force = self._ctx.params["driver_name"]
        found: dict[str, GivenOption] = {}
        for driver, pairs, place in self._places():
            if driver in (None, in_force):
                for key, value in pairs:
                    found.setdefault(key, GivenOption(key, value, place))
        return list(found.values())

    def load_driver(self) -> Driver | DeclaringDriver:
        """The driver in force."""
        name: str | None = self._ctx.params["driver_name"]
        if name is None:
            where = DEFAULT_FILE if self.file in (None, os.devnull) else self.file
            raise NotConfigured(
                "There is no driver. Choose one with --driver, ROOST_AGENT_DRIVER, or `driver:` in "
                f"{where}: linux describes this machine."
            )
        given = {option.key: option.value for option in self.driver_options}
        with naming_origin(self._ctx, ("driver_name", "driver_options")):
            return load_driver(name, given)

    def check_ownership(self, driver: Driver | DeclaringDriver) -> None:
        """Refuse options of owners for a driver that has none."""
        if isinstance(driver, DeclaringDriver):
            return
        for name in _OF_OWNERS:
            if is_given(self._ctx, name) and self._ctx.params[name]:
                option = f"--{key_of(option_named(self._ctx, name))}"
                place = origin(self._ctx, name)
                at = "" if place == COMMAND_LINE else f" ({place})"
                raise NotConfigured(
                    f"{option}{at} is for drivers that declare, and "
                    f"{self._ctx.params['driver_name']} edits the tree itself with "
                    f"update_provider_tree. Leave {option} out."
                )

    @contextmanager
    def naming(self, *names: str) -> Iterator[None]:
        """Name the place of these options in an error about them."""
        with naming_origin(self._ctx, names):
            yield

    def settings(self) -> list[AgentSetting]:
        """All options, those of the driver behind its name."""
        found = []
        for option in self._ctx.command.params:
            if not isinstance(option, click.Option) or option.name in ("config", "show_config"):
                continue
            if option.type is KEY_VALUE:
                found += [_setting(one) for one in self.driver_options]
                continue
            name = str(option.name)
            value = _shown(name, self._ctx.params[name])
            in_force = name not in self._out_of_force
            found.append(AgentSetting(key_of(option), value, origin(self._ctx, name), in_force))
        return found

    def _places(self) -> Iterator[tuple[str | None, list[tuple[str, str]], str]]:
        """The driver and the options of the driver in each place, the first place first."""
        driver = option_named(self._ctx, "driver_name")
        options = option_named(self._ctx, "driver_options")
        source = self._ctx.get_parameter_source
        if source("driver_options") is ParameterSource.COMMANDLINE:
            yield None, self._ctx.params["driver_options"], COMMAND_LINE
        variable = options.value_from_envvar(self._ctx) or ()
        pairs = [KEY_VALUE.convert(text, options, self._ctx) for text in variable]
        yield driver.value_from_envvar(self._ctx), pairs, str(options.envvar)
        file = file_in_force(self._ctx)
        values: Mapping[str, Any] = {} if file is None else file.values
        key = key_of(options)
        if file is not None and key in values:
            yield values.get(key_of(driver)), values[key], file.place(key)


def _setting(option: GivenOption) -> AgentSetting:
    value = _shown(option.key, option.value)
    return AgentSetting(f"options.{option.key}", value, option.origin)


def _shown(name: str, value: Any) -> Any:
    return shown_value(name, str(value) if isinstance(value, Path) else value)


def setting_lines(settings: list[AgentSetting]) -> Iterator[tuple[str, bool]]:
    """The lines of a file with these options, and whether each line has a default."""
    groups = {_group(one) for one in settings if _has_effect(one)}
    before = ""
    for one in settings:
        group = _group(one)
        if group and group != before:
            yield f"{'' if group in groups else '# '}{group}:", False
        before = group
        key = one.name.removeprefix(f"{group}.")
        line = f"{'  ' if group else ''}{'' if _has_effect(one) else '# '}{key}: {_yaml(one.value)}"
        remark = one.origin if one.in_force else f"{one.origin}, not in force"
        yield f"{line.rstrip()}    # {remark}", one.origin == DEFAULT


def _group(setting: AgentSetting) -> str:
    """The key that has the option in a file; empty if the option has a key of its own."""
    return setting.name.rpartition(".")[0]


def _has_effect(setting: AgentSetting) -> bool:
    """Whether a file with the option says the same. A hidden secret is no secret."""
    return setting.in_force and setting.value not in (None, HIDDEN)


def _yaml(value: Any) -> str:
    """A value as YAML.

    >>> _yaml(60.0), _yaml(True), _yaml("*,!sda"), _yaml("compute-1")
    ('60', 'true', '"*,!sda"', 'compute-1')
    """
    if value is None:
        return ""
    if isinstance(value, float):
        return plain_number(value)
    plain = isinstance(value, str) and _PLAIN.fullmatch(value)
    return str(value) if plain else json.dumps(value)
