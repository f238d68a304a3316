"""The settings of a running service, as plain values: nothing reads options on a request."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from typing import Any

import platformdirs
from oslo_config import cfg
from oslo_log import log
from oslo_policy import opts as policy_opts

from roost.configuration import options
from roost.configuration.config_file import read_config_file
from roost.configuration.keystone_options import register_keystone_options
from roost.configuration.options import (
    CorsSettings,
    NetworkSettings,
    Settings,
    WatchSettings,
    values_in_force,
)
from roost.configuration.unknown_names import KnownOption, all_options
from roost.model.errors import ConfigurationError
from roost.model.limits import Limits
from roost.search.candidates.ranking import CandidateOrder
from roost.store.database import DatabaseOptions

# How `roost serve` tells its workers which files to read.
CONFIG_FILES_VARIABLE = "ROOST_CONFIG_FILES"
# How the library names an option whose value it refuses.
_COMPLAINT = re.compile(r"argument --(\w+): (.*)")

__all__ = [
    "CONFIG_FILES_VARIABLE",
    "ConfigurationError",
    "CorsSettings",
    "NetworkSettings",
    "Settings",
    "WatchSettings",
    "default_database_url",
    "load_settings",
    "options_without_effect",
]


def load_settings(
    config_files: Sequence[str] | None = None, database_url: str | None = None
) -> Settings:
    """Read the files, then the environment, then what was given on the command line.

    Without files: those named by the environment, or in the usual places of `placement.conf`.
    Without any file the service runs for a user on one machine: the database is an SQLite file in
    the user's data directory, and `admin` may do everything.
    """
    files = list(config_files) if config_files else _default_files()
    for name in files:
        if not Path(name).exists():
            raise ConfigurationError(
                f"There is no configuration file {name}. Create it, or name another one."
            )
        read_config_file(name)
    conf = _parse(files)
    url = conf.placement_database.connection or default_database_url()
    url = url if database_url is None else database_url
    upgrade = conf.placement_database.sync_on_startup
    cors = CorsSettings(**values_in_force(CorsSettings, conf))
    return Settings(
        config_files=tuple(files),
        database=DatabaseOptions(url, **values_in_force(DatabaseOptions, conf)),
        upgrade_schema=url.startswith("sqlite") if upgrade is None else upgrade,
        auth_strategy=_strategy(conf, files),
        candidate_order=_candidate_order(conf.placement),
        cors=cors if cors.allowed_origins else None,
        network=NetworkSettings(**values_in_force(NetworkSettings, conf)),
        limits=Limits(**values_in_force(Limits, conf)),
        watch=WatchSettings(**values_in_force(WatchSettings, conf)),
        oslo=conf,
        **values_in_force(Settings, conf),
    )


def default_database_url() -> str:
    """The SQLite file that the service uses if nothing configures a database."""
    return f"sqlite:///{platformdirs.user_data_path('roost') / 'placement.db'}"


def options_without_effect(settings: Settings) -> list[str]:
    """The options in the configuration that Roost knows but has no use for."""
    known = [option for option in all_options() if not option.has_effect]
    return [str(option) for option in known if option.value(settings.oslo) is not None]


def _default_files() -> list[str]:
    named = os.environ.get(CONFIG_FILES_VARIABLE)
    if named:
        return named.split(os.pathsep)
    directory = os.environ.get("OS_PLACEMENT_CONFIG_DIR")
    if directory:
        path = Path(directory) / "placement.conf"
        if not path.is_file():
            raise ConfigurationError(
                f"OS_PLACEMENT_CONFIG_DIR names {directory}, where there is no placement.conf. "
                "Create the file there, or unset the variable."
            )
        return [str(path)]
    usual = [Path.home() / ".placement", Path.home(), Path("/etc/placement"), Path("/etc")]
    main = next((d / "placement.conf" for d in usual if (d / "placement.conf").is_file()), None)
    found = [] if main is None else [str(main)]
    for directory_path in usual:
        found += sorted(str(path) for path in directory_path.glob("placement.conf.d/*.conf"))
    return found


def _parse(files: Sequence[str]) -> Any:
    conf = cfg.ConfigOpts()
    log.register_options(conf)
    for group, members in options.GROUPS.items():
        conf.register_opts(members, group=group)
    for group, members in options.WITHOUT_EFFECT.items():
        conf.register_opts(members, group=None if group == "DEFAULT" else group)
    for group, policy_options in policy_opts.list_opts():
        conf.register_opts(policy_options, group=group)
    if not files:
        conf.set_default("enforce_new_defaults", False, group="oslo_policy")
    _read_files(conf, files)
    _touch_all(conf)
    if _strategy(conf, files) == "keystone":
        register_keystone_options(conf)
        _touch_all(conf)
    return conf


def _read_files(conf: Any, files: Sequence[str]) -> None:
    complaint = StringIO()
    try:
        with redirect_stderr(complaint):
            conf(
                args=[],
                project="placement",
                default_config_files=list(files),
                default_config_dirs=[],
            )
    except cfg.Error as error:
        raise ConfigurationError(f"{', '.join(files)}: {error}") from error
    except SystemExit:
        # Options of the log could stand on a command line. At a wrong value of one, the library
        # writes a line and ends the process.
        matched = _COMPLAINT.search(complaint.getvalue())
        name, why = matched.groups() if matched else ("?", complaint.getvalue().strip())
        raise ConfigurationError(_wrong_value(name, "DEFAULT", why)) from None


def _strategy(conf: Any, files: Sequence[str]) -> str | None:
    """The strategy of the configuration. A file without one means Keystone, as in the reference."""
    strategy: str | None = conf.api.auth_strategy or ("keystone" if files else None)
    return strategy


def _touch_all(conf: Any) -> None:
    """Read every option once, so that an invalid value shows at start, not at a request."""
    for known in all_options(conf):
        _touch(conf, known)


def _touch(conf: Any, known: KnownOption) -> None:
    group, name = known.group, known.option.dest
    try:
        known.value(conf)
    except (cfg.NoSuchOptError, cfg.NoSuchGroupError, cfg.TemplateSubstitutionError):
        # The text after the sign may be half of a password, so the message leaves it out.
        raise ConfigurationError(
            f"The option {name} in [{group}] has a $, which begins the name of another option, "
            "and there is no such option. Write $$ for a dollar sign."
        ) from None
    except (ValueError, cfg.Error) as error:
        _, _, why = str(error).partition(" is not valid: ")
        raise ConfigurationError(_wrong_value(name, group, why or str(error))) from None


def _wrong_value(name: str, group: str, why: str) -> str:
    return (
        f"The option {name} in [{group}] has a value that it cannot have: {why}. "
        "Correct the value, or remove the option to get its default."
    )


def _candidate_order(group: Any) -> CandidateOrder:
    maximum = group.max_allocation_candidates
    return CandidateOrder(
        maximum=None if maximum == -1 else maximum,
        depth_first=group.allocation_candidates_generation_strategy == "depth-first",
        shuffled=group.randomize_allocation_candidates,
    )
