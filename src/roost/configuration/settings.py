"""The settings of a running service, as plain values: nothing reads options on a request."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass, fields
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
from roost.configuration.unknown_names import options_by_name
from roost.model.errors import ConfigurationError
from roost.model.identifiers import canonical_uuid, is_uuid
from roost.model.limits import Limits
from roost.model.proxies import UNIX, TrustedProxies
from roost.search.candidates.ranking import CandidateOrder
from roost.store.database import (
    POOL_OVERFLOW,
    POOL_SIZE,
    POOL_TIMEOUT_SECONDS,
    DatabaseOptions,
)

# How `roost serve` tells its workers which files to read.
CONFIG_FILES_VARIABLE = "ROOST_CONFIG_FILES"
# How the library names an option whose value it refuses.
_COMPLAINT = re.compile(r"argument --(\w+): (.*)")
# A path as it stands in a URL, without a slash at its end.
_PREFIX = re.compile(r"(/[A-Za-z0-9._~-]+)+\Z")

__all__ = [
    "CONFIG_FILES_VARIABLE",
    "ConfigurationError",
    "CorsSettings",
    "NetworkSettings",
    "Settings",
    "WatchSettings",
    "checked_prefix",
    "default_database_url",
    "load_settings",
    "options_without_effect",
]


@dataclass(frozen=True, slots=True)
class CorsSettings:
    """Which pages of other origins may use the API, and how."""

    allowed_origins: frozenset[str]
    allow_credentials: bool
    max_age_seconds: int
    allow_methods: tuple[str, ...]
    allow_headers: tuple[str, ...]
    expose_headers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NetworkSettings:
    """What the network sees of the service."""

    tls_cert: str | None
    tls_key: str | None
    tls_client_ca: str | None
    # Empty, or a path without a slash at its end.
    prefix: str
    trusted_proxies: TrustedProxies


@dataclass(frozen=True, slots=True)
class WatchSettings:
    """What the service tells operators about itself."""

    # Whether `/metrics` answers.
    metrics: bool = True
    # The trees whose capacity `/metrics` shows by themselves.
    traits: tuple[str, ...] = ()
    aggregates: tuple[str, ...] = ()
    # A request that takes longer gets a warning; 0 if none does.
    slow_request_seconds: float = 1.0
    # Whether every answer without candidates tells its reason.
    explain_empty: bool = False


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that an operator can choose."""

    config_files: tuple[str, ...]
    database: DatabaseOptions
    upgrade_schema: bool
    connect_attempts: int
    connect_interval_seconds: int
    auth_strategy: str | None
    tokens_file: str | None
    keystone_wait_seconds: int
    incomplete_project: str
    incomplete_user: str
    candidate_order: CandidateOrder
    cors: CorsSettings | None
    parse_proxy_headers: bool
    network: NetworkSettings
    limits: Limits
    watch: WatchSettings
    # What oslo.policy and oslo.log read their own options from.
    oslo: Any


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
    if database_url is not None:
        url = database_url
    group = conf.placement_database
    upgrade = group.sync_on_startup
    return Settings(
        config_files=tuple(files),
        database=DatabaseOptions(
            url=url,
            connection_parameters=group.connection_parameters,
            sqlite_synchronous=group.sqlite_synchronous,
            mysql_sql_mode=group.mysql_sql_mode,
            recycle_seconds=group.connection_recycle_time,
            pool_size=_given(group.max_pool_size, POOL_SIZE),
            pool_overflow=_given(group.max_overflow, POOL_OVERFLOW),
            pool_timeout_seconds=_given(group.pool_timeout, POOL_TIMEOUT_SECONDS),
            # Only a second attempt finds the row that a write conflicts with, and words the error.
            attempts=max(3, conf.placement.allocation_conflict_retry_count),
            echo=group.connection_debug >= 50,
            wait_seconds=conf.roost.database_wait_seconds,
            silence_seconds=conf.roost.database_silence_seconds,
        ),
        upgrade_schema=url.startswith("sqlite") if upgrade is None else upgrade,
        connect_attempts=group.max_retries,
        connect_interval_seconds=group.retry_interval,
        auth_strategy=_strategy(conf, files),
        tokens_file=conf.roost.tokens_file,
        keystone_wait_seconds=conf.roost.keystone_wait_seconds,
        incomplete_project=conf.placement.incomplete_consumer_project_id,
        incomplete_user=conf.placement.incomplete_consumer_user_id,
        candidate_order=_candidate_order(conf.placement),
        cors=_cors(conf),
        parse_proxy_headers=conf.oslo_middleware.enable_proxy_headers_parsing,
        network=_network(conf.roost),
        limits=_limits(conf.roost),
        watch=_watch(conf.roost),
        oslo=conf,
    )


def default_database_url() -> str:
    """The SQLite file that the service uses if nothing configures a database."""
    return f"sqlite:///{platformdirs.user_data_path('roost') / 'placement.db'}"


def options_without_effect(settings: Settings) -> list[str]:
    """The options in the configuration that Roost knows but has no use for."""
    conf = settings.oslo
    return [
        f"[{group}]{option.name}"
        for group, members in options.WITHOUT_EFFECT.items()
        for option in members
        if _value(conf, group, option.name) is not None
    ]


def _value(conf: Any, group: str, name: str) -> Any:
    return conf[name] if group == "DEFAULT" else conf[group][name]


def _given(value: int | None, default: int) -> int:
    return default if value is None else value


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
        for group, name in register_keystone_options(conf):
            _touch(conf, group, name)
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
    for group, members in options_by_name().items():
        registered = conf if group == "DEFAULT" else conf[group]
        for name in members:
            if name in registered:
                _touch(conf, group, name)


def _touch(conf: Any, group: str, name: str) -> None:
    try:
        _value(conf, group, name)
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


def _network(group: Any) -> NetworkSettings:
    """The settings in the group `[roost]`."""
    return NetworkSettings(
        # In a file, `tls_cert =` means that there is none.
        tls_cert=group.tls_cert or None,
        tls_key=group.tls_key or None,
        tls_client_ca=group.tls_client_ca or None,
        prefix=checked_prefix(group.prefix),
        trusted_proxies=_trusted_proxies(group.trusted_proxies),
    )


def checked_prefix(given: str) -> str:
    """The prefix without a slash at its end; `ConfigurationError` if it is no path.

    >>> checked_prefix("/placement/"), checked_prefix("/")
    ('/placement', '')
    """
    prefix = given.rstrip("/")
    if prefix and not _PREFIX.match(prefix):
        raise ConfigurationError(
            f"[roost]prefix is {given!r}, which is no path. Begin it with a slash, and use "
            "letters, digits and . _ ~ - only: /placement."
        )
    return prefix


def _trusted_proxies(names: list[str]) -> TrustedProxies:
    try:
        return TrustedProxies.of(names)
    except ValueError as error:
        raise ConfigurationError(
            f"[roost]trusted_proxies: {error}. Give addresses, networks such as 10.0.0.0/24, or "
            f"`{UNIX}`."
        ) from None


def _limits(group: Any) -> Limits:
    return Limits(**{field.name: group[field.name] for field in fields(Limits)})


def _watch(group: Any) -> WatchSettings:
    for name in ("metrics_traits", "metrics_aggregates"):
        if len(group[name]) > options.NAMED_MAX:
            raise ConfigurationError(
                f"The option {name} in [roost] has {len(group[name])} members, and may have "
                f"{options.NAMED_MAX}. Leave some out."
            )
    for uuid in group.metrics_aggregates:
        if not is_uuid(uuid):
            raise ConfigurationError(
                f"The option metrics_aggregates in [roost] has {uuid!r}, which is no uuid. Give "
                "the uuids of aggregates."
            )
    return WatchSettings(
        metrics=group.metrics,
        traits=tuple(dict.fromkeys(group.metrics_traits)),
        aggregates=tuple(dict.fromkeys(map(canonical_uuid, group.metrics_aggregates))),
        slow_request_seconds=group.slow_request_seconds,
        explain_empty=group.explain_empty,
    )


def _candidate_order(group: Any) -> CandidateOrder:
    maximum = group.max_allocation_candidates
    return CandidateOrder(
        maximum=None if maximum == -1 else maximum,
        depth_first=group.allocation_candidates_generation_strategy == "depth-first",
        shuffled=group.randomize_allocation_candidates,
    )


def _cors(conf: Any) -> CorsSettings | None:
    if not conf.cors.allowed_origin:
        return None
    return CorsSettings(
        allowed_origins=frozenset(conf.cors.allowed_origin),
        allow_credentials=conf.cors.allow_credentials,
        max_age_seconds=conf.cors.max_age,
        allow_methods=tuple(conf.cors.allow_methods),
        allow_headers=tuple(conf.cors.allow_headers),
        expose_headers=tuple(conf.cors.expose_headers),
    )
