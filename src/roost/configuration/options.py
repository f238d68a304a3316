"""The options that `placement.conf` can set, by the names operators know."""

from __future__ import annotations

from dataclasses import fields

from oslo_config import cfg

from roost.model.limits import Limits
from roost.model.proxies import UNIX
from roost.store.database import SILENCE_SECONDS, WAIT_SECONDS

_NIL_UUID = "00000000-0000-0000-0000-000000000000"
# Traits, and aggregates, of which `/metrics` shows the capacity.
NAMED_MAX = 32

DATABASE = (
    cfg.StrOpt("connection", secret=True, help="SQLAlchemy URL of the database."),
    cfg.StrOpt("connection_parameters", default="", help="Appended to the URL: a=b&c=d."),
    cfg.BoolOpt("sqlite_synchronous", default=True, help="False: faster, loses data on a crash."),
    cfg.StrOpt("mysql_sql_mode", default="TRADITIONAL", help="The session's SQL mode on MySQL."),
    cfg.IntOpt(
        "connection_recycle_time",
        default=3600,
        min=-1,
        help="Seconds a connection is kept; -1: for ever.",
    ),
    cfg.IntOpt("max_pool_size", min=0, help="Connections kept by each worker; 0: no limit."),
    cfg.IntOpt(
        "max_overflow", min=-1, help="Connections on top of these under load; -1: no limit."
    ),
    cfg.IntOpt("pool_timeout", min=0, help="Seconds to wait for a free connection."),
    cfg.IntOpt(
        "max_retries", default=10, min=-1, help="Attempts to connect at start; -1: for ever."
    ),
    cfg.IntOpt("retry_interval", default=10, min=0, help="Seconds between these attempts."),
    cfg.IntOpt(
        "connection_debug", default=0, help="50 and more: log every statement, without values."
    ),
    cfg.BoolOpt("sync_on_startup", help="Upgrade an older schema at start. SQLite: true."),
)

API = (
    cfg.StrOpt(
        "auth_strategy",
        choices=("keystone", "noauth2", "tokens"),
        deprecated_group="DEFAULT",
        help="How clients prove their identity. noauth2 believes what the token says.",
    ),
)

PLACEMENT = (
    cfg.StrOpt("incomplete_consumer_project_id", default=_NIL_UUID, help="For claims below 1.8."),
    cfg.StrOpt("incomplete_consumer_user_id", default=_NIL_UUID, help="For claims below 1.8."),
    cfg.IntOpt(
        "allocation_conflict_retry_count", default=10, help="How often a write is attempted."
    ),
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
)

CORS = (
    cfg.ListOpt("allowed_origin", help="Origins whose pages may use the API; switches CORS on."),
    cfg.BoolOpt("allow_credentials", default=True, help="Whether pages may send credentials."),
    cfg.IntOpt("max_age", default=3600, help="Seconds for which browsers remember the answer."),
    cfg.ListOpt(
        "allow_methods", default=["GET", "PUT", "POST", "DELETE", "PATCH"], help="Methods."
    ),
    cfg.ListOpt(
        "allow_headers",
        default=[
            "X-Auth-Token",
            "X-Openstack-Request-Id",
            "X-Identity-Status",
            "X-Roles",
            "X-Service-Catalog",
            "X-User-Id",
            "X-Tenant-Id",
            "OpenStack-API-Version",
        ],
        help="Request headers that pages may send.",
    ),
    cfg.ListOpt(
        "expose_headers",
        default=[
            "X-Auth-Token",
            "X-Openstack-Request-Id",
            "X-Subject-Token",
            "X-Service-Token",
            "OpenStack-API-Version",
        ],
        help="Response headers that pages may read.",
    ),
)

MIDDLEWARE = (
    cfg.BoolOpt(
        "enable_proxy_headers_parsing",
        default=False,
        help="Believe X-Forwarded-* and Forwarded: only behind a proxy that sets them.",
    ),
)


_LIMITS = tuple(
    cfg.IntOpt(
        limit.name,
        default=limit.default,
        min=limit.metadata["minimum"],
        help=limit.metadata["meaning"],
    )
    for limit in fields(Limits)
)

# What the reference does not have.
ROOST = (
    cfg.StrOpt("tokens_file", help="The tokens of auth_strategy = tokens; see `roost token`."),
    cfg.IntOpt(
        "keystone_wait_seconds",
        default=10,
        min=1,
        help="Seconds for which a request waits for Keystone to check its token; then 503.",
    ),
    *_LIMITS,
    cfg.BoolOpt("metrics", default=True, help="Whether /metrics answers; else 404."),
    cfg.ListOpt(
        "metrics_traits",
        default=[],
        help="Traits for which /metrics shows the capacity of the trees that have them; at most "
        f"{NAMED_MAX}.",
    ),
    cfg.ListOpt(
        "metrics_aggregates",
        default=[],
        help="Uuids of aggregates for which /metrics shows the capacity of their trees; at most "
        f"{NAMED_MAX}.",
    ),
    cfg.FloatOpt(
        "slow_request_seconds",
        default=1.0,
        min=0,
        help="A request that takes longer gets a warning in the log; 0: none does.",
    ),
    cfg.BoolOpt(
        "explain_empty",
        default=False,
        help="Whether every answer without candidates tells its reason in X-Roost-Reason and in "
        "the log; else those to requests with X-Roost-Explain: 1.",
    ),
    cfg.IntOpt(
        "database_wait_seconds",
        default=WAIT_SECONDS,
        min=1,
        help="Seconds to wait for a new connection and for the change journal; then 503.",
    ),
    cfg.IntOpt(
        "database_silence_seconds",
        default=SILENCE_SECONDS,
        min=15,
        help="Seconds to wait for the answer to any other statement; then 503.",
    ),
)

NETWORK = (
    cfg.StrOpt("tls_cert", help="File of the certificate; `roost serve` then speaks HTTPS."),
    cfg.StrOpt("tls_key", help="File of its key. Default: the file of the certificate."),
    cfg.StrOpt("tls_client_ca", help="Clients need a certificate of the authority in this file."),
    cfg.StrOpt("prefix", default="", help="The path below which the service is: /placement."),
    cfg.ListOpt(
        "trusted_proxies",
        default=["127.0.0.0/8", "::1", UNIX],
        help="Addresses and networks of proxies whose X-Forwarded-* and Forwarded are believed; "
        "`unix`: those behind a unix socket.",
    ),
)

# Options of the reference that change nothing here: accepted, and named in the log when set.
WITHOUT_EFFECT: dict[str, tuple[cfg.Opt, ...]] = {
    "placement_database": (
        cfg.StrOpt("slave_connection", secret=True),
        cfg.BoolOpt("connection_trace"),
    ),
    "oslo_middleware": (
        cfg.IntOpt("max_request_body_size"),
        cfg.StrOpt("secure_proxy_ssl_header"),
    ),
    "workarounds": (cfg.BoolOpt("optimize_for_wide_provider_trees"),),
    "DEFAULT": (cfg.StrOpt("tempdir"), cfg.StrOpt("pybasedir"), cfg.StrOpt("state_path")),
}

GROUPS: dict[str, tuple[cfg.Opt, ...]] = {
    "placement_database": DATABASE,
    "api": API,
    "placement": PLACEMENT,
    "cors": CORS,
    "oslo_middleware": MIDDLEWARE,
    "roost": (*ROOST, *NETWORK),
}
