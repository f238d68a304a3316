"""The options that `placement.conf` can set, by the names operators know, and their settings.

An option is declared once. A field of the settings has its name, its default and its meaning. The
few options that decide something together are declared below, in the form of oslo.config.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from oslo_config import cfg

from roost.configuration.query_file import QUERIES_MAX, QueryLine, read_query_file
from roost.model.declared_options import DeclaredOption, declared_options, option
from roost.model.errors import ConfigurationError
from roost.model.identifiers import canonical_uuid, is_uuid
from roost.model.limits import Limits
from roost.model.proxies import UNIX, TrustedProxies
from roost.search.candidates.ranking import CandidateOrder
from roost.store.database import DatabaseOptions

# Traits, and aggregates, of which `/metrics` shows the capacity.
NAMED_MAX = 32

_NIL_UUID = "00000000-0000-0000-0000-000000000000"
# A path as it stands in a URL, without a slash at its end.
_PREFIX = re.compile(r"(/[A-Za-z0-9._~-]+)+\Z")


# -- values that text can miss


def _checked_prefix(given: str) -> str:
    """The prefix without a slash at its end; `ConfigurationError` if it is no path.

    >>> _checked_prefix("/placement/"), _checked_prefix("/")
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


def _few(name: str, members: list[str]) -> tuple[str, ...]:
    if len(members) > NAMED_MAX:
        raise ConfigurationError(
            f"The option {name} in [roost] has {len(members)} members, and may have {NAMED_MAX}. "
            "Leave some out."
        )
    return tuple(dict.fromkeys(members))


def _few_uuids(name: str, members: list[str]) -> tuple[str, ...]:
    for uuid in members:
        if not is_uuid(uuid):
            raise ConfigurationError(
                f"The option {name} in [roost] has {uuid!r}, which is no uuid. Give the uuids of "
                "aggregates."
            )
    return _few(name, [canonical_uuid(uuid) for uuid in members])


# -- settings


_cors = partial(option, group="cors")


@dataclass(frozen=True, slots=True)
class CorsSettings:
    """Which pages of other origins may use the API, and how."""

    allowed_origins: frozenset[str] = _cors(
        [],
        "Origins whose pages may use the API; switches CORS on.",
        name="allowed_origin",
        read=frozenset,
    )
    allow_credentials: bool = _cors(True, "Whether pages may send credentials.")
    max_age_seconds: int = _cors(
        3600, "Seconds for which browsers remember the answer.", name="max_age"
    )
    allow_methods: tuple[str, ...] = _cors(
        ["GET", "PUT", "POST", "DELETE", "PATCH"], "Methods.", read=tuple
    )
    allow_headers: tuple[str, ...] = _cors(
        [
            "X-Auth-Token",
            "X-Openstack-Request-Id",
            "X-Identity-Status",
            "X-Roles",
            "X-Service-Catalog",
            "X-User-Id",
            "X-Tenant-Id",
            "OpenStack-API-Version",
        ],
        "Request headers that pages may send.",
        read=tuple,
    )
    expose_headers: tuple[str, ...] = _cors(
        [
            "X-Auth-Token",
            "X-Openstack-Request-Id",
            "X-Subject-Token",
            "X-Service-Token",
            "OpenStack-API-Version",
        ],
        "Response headers that pages may read.",
        read=tuple,
    )


# In a file, `tls_cert =` means that there is none.
_file = partial(option, None, read=lambda name: name or None)


@dataclass(frozen=True, slots=True)
class NetworkSettings:
    """What the network sees of the service."""

    tls_cert: str | None = _file("File of the certificate (PEM); `roost serve` then speaks HTTPS.")
    tls_key: str | None = _file("File of its key, if that is another file.")
    tls_client_ca: str | None = _file("Clients need a certificate of the authority in this file.")
    # Empty, or a path without a slash at its end.
    prefix: str = option(
        "", "The path below which the service is: /placement.", read=_checked_prefix
    )
    trusted_proxies: TrustedProxies = option(  # noqa: RUF009  # it is a field
        ["127.0.0.0/8", "::1", UNIX],
        "Addresses and networks of proxies whose X-Forwarded-* and Forwarded are believed; "
        "`unix`: those behind a unix socket.",
        read=_trusted_proxies,
    )


@dataclass(frozen=True, slots=True)
class WatchSettings:
    """What the service tells operators about itself."""

    metrics: bool = option(True, "Whether /metrics answers; else 404.")
    traits: tuple[str, ...] = option(
        [],
        "Traits for which /metrics shows the capacity of the trees that have them; at most "
        f"{NAMED_MAX}.",
        name="metrics_traits",
        read=partial(_few, "metrics_traits"),
    )
    aggregates: tuple[str, ...] = option(
        [],
        "Uuids of aggregates for which /metrics shows the capacity of their trees; at most "
        f"{NAMED_MAX}.",
        name="metrics_aggregates",
        read=partial(_few_uuids, "metrics_aggregates"),
    )
    queries: tuple[QueryLine, ...] = option(
        None,
        "File with lines `name = <query>`: /metrics shows how many more consumers with each query "
        f"fit; at most {QUERIES_MAX}.",
        name="metrics_queries",
        read=read_query_file,
    )
    slow_request_seconds: float = option(
        1.0, "A request that takes longer gets a warning in the log; 0: none does.", minimum=0
    )
    explain_empty: bool = option(
        False,
        "Whether every answer without candidates tells its reason in X-Roost-Reason and in the "
        "log; else those to requests with X-Roost-Explain: 1.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that an operator can choose."""

    config_files: tuple[str, ...]
    database: DatabaseOptions
    upgrade_schema: bool
    connect_attempts: int = option(
        10,
        "Attempts to connect at start; -1: for ever.",
        group="placement_database",
        name="max_retries",
        minimum=-1,
    )
    connect_interval_seconds: int = option(
        10,
        "Seconds between these attempts.",
        group="placement_database",
        name="retry_interval",
        minimum=0,
    )
    auth_strategy: str | None
    tokens_file: str | None = option(
        None, "The tokens of auth_strategy = tokens; see `roost token`."
    )
    keystone_wait_seconds: int = option(
        10,
        "Seconds for which a request waits for Keystone to check its token; then 503.",
        minimum=1,
    )
    incomplete_project: str = option(
        _NIL_UUID, "For claims below 1.8.", group="placement", name="incomplete_consumer_project_id"
    )
    incomplete_user: str = option(
        _NIL_UUID, "For claims below 1.8.", group="placement", name="incomplete_consumer_user_id"
    )
    candidate_order: CandidateOrder
    cors: CorsSettings | None
    parse_proxy_headers: bool = option(
        False,
        "Believe X-Forwarded-* and Forwarded: only behind a proxy that sets them.",
        group="oslo_middleware",
        name="enable_proxy_headers_parsing",
    )
    network: NetworkSettings
    limits: Limits
    watch: WatchSettings
    # What oslo.policy and oslo.log read their own options from.
    oslo: Any


# -- options in the form of oslo.config


# Several of these, or the files, decide about one setting.
_COMBINED: dict[str, tuple[cfg.Opt, ...]] = {
    "placement_database": (
        cfg.StrOpt("connection", secret=True, help="SQLAlchemy URL of the database."),
        cfg.BoolOpt("sync_on_startup", help="Upgrade an older schema at start. SQLite: true."),
    ),
    "api": (
        cfg.StrOpt(
            "auth_strategy",
            choices=("keystone", "noauth2", "tokens"),
            deprecated_group="DEFAULT",
            help="How clients prove their identity. noauth2 believes what the token says.",
        ),
    ),
    "placement": (
        cfg.BoolOpt(
            "randomize_allocation_candidates",
            default=False,
            help="Candidates come in random order, and a limit picks at random.",
        ),
        cfg.IntOpt(
            "max_allocation_candidates",
            default=100_000,
            min=-1,
            help="How many candidates are looked for at most; -1: all there are.",
        ),
        cfg.StrOpt(
            "allocation_candidates_generation_strategy",
            default="breadth-first",
            choices=("depth-first", "breadth-first"),
            help="Under the maximum: all of one tree before the next, or one of each in turn.",
        ),
    ),
}

# Options of the reference that change nothing here: accepted, and named in the log when set.
WITHOUT_EFFECT: dict[str, tuple[cfg.Opt, ...]] = {
    "placement_database": (
        cfg.StrOpt("slave_connection", secret=True),
        cfg.BoolOpt("connection_trace"),
    ),
    "oslo_middleware": (cfg.IntOpt("max_request_body_size"), cfg.StrOpt("secure_proxy_ssl_header")),
    "workarounds": (cfg.BoolOpt("optimize_for_wide_provider_trees"),),
    "DEFAULT": (cfg.StrOpt("tempdir"), cfg.StrOpt("pybasedir"), cfg.StrOpt("state_path")),
}

_KINDS = {bool: cfg.BoolOpt, int: cfg.IntOpt, float: cfg.FloatOpt, list: cfg.ListOpt}


def _groups() -> Mapping[str, tuple[cfg.Opt, ...]]:
    groups = dict(_COMBINED)
    for values in (DatabaseOptions, Settings, CorsSettings, Limits, WatchSettings, NetworkSettings):
        for name, declared in declared_options(values).items():
            groups[declared.group] = (*groups.get(declared.group, ()), _in_oslo(name, declared))
    return groups


def _in_oslo(field_name: str, declared: DeclaredOption) -> cfg.Opt:
    kind = _KINDS.get(type(declared.default), cfg.StrOpt)
    bounds = {} if declared.minimum is None else {"min": declared.minimum}
    name = declared.name or field_name
    found: cfg.Opt = kind(name, default=declared.default, help=declared.meaning, **bounds)
    return found


GROUPS = _groups()


def values_in_force(values: Any, conf: Any) -> dict[str, Any]:
    """The fields of a dataclass that have options, with their values in a configuration."""
    found = {}
    for name, declared in declared_options(values).items():
        given = conf[declared.group][declared.name or name]
        found[name] = declared.read(declared.default if given is None else given)
    return found
