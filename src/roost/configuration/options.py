"""The options that `placement.conf` can set, by the names operators know."""

from __future__ import annotations

from oslo_config import cfg

from roost.model.limits import Limits
from roost.store.database import SILENCE_SECONDS, WAIT_SECONDS

_NIL_UUID = "00000000-0000-0000-0000-000000000000"
LIMITS = Limits()

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
    cfg.IntOpt("connection_debug", default=0, help="50 and more: log every statement."),
    cfg.BoolOpt("sync_on_startup", help="Upgrade an older schema at start. SQLite: true."),
)

API = (
    cfg.StrOpt(
        "auth_strategy",
        choices=("keystone", "noauth2"),
        deprecated_group="DEFAULT",
        help="Who may talk to the service. noauth2 believes what the token says.",
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

# What the reference does not have: the limits of clients.
ROOST = (
    cfg.IntOpt(
        "max_body_bytes",
        default=LIMITS.max_body_bytes,
        min=1024,
        help="The largest body of a request; a larger one is answered with 413.",
    ),
    cfg.IntOpt(
        "max_header_bytes",
        default=LIMITS.max_header_bytes,
        min=1024,
        help="The largest address and headers of a request; larger ones are answered with 431.",
    ),
    cfg.IntOpt(
        "max_connections",
        default=LIMITS.max_connections,
        min=1,
        help="Connections of a worker; one more takes the place of the longest idle one.",
    ),
    cfg.IntOpt(
        "max_bodies_bytes",
        default=LIMITS.max_bodies_bytes,
        min=1024,
        help="All large bodies that a worker holds at once; a further one is answered with 503.",
    ),
    cfg.IntOpt(
        "max_unread_bytes",
        default=LIMITS.max_unread_bytes,
        min=1024,
        help="All answers that clients of a worker have not read; the slowest is disconnected.",
    ),
    cfg.IntOpt(
        "header_seconds",
        default=LIMITS.header_seconds,
        min=1,
        help="Time for the headers of a request to come.",
    ),
    cfg.IntOpt(
        "body_seconds",
        default=LIMITS.body_seconds,
        min=1,
        help="Time for the body of a request to come.",
    ),
    cfg.IntOpt(
        "idle_seconds",
        default=LIMITS.idle_seconds,
        min=1,
        help="Time for which a connection is kept without a request.",
    ),
    cfg.IntOpt(
        "unread_seconds",
        default=LIMITS.unread_seconds,
        min=1,
        help="Time after which a client that reads nothing of its answer is disconnected.",
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
    cfg.IntOpt(
        "max_provider_members",
        default=LIMITS.max_provider_members,
        min=1000,
        help="The most aggregates, traits or inventories that one request gives to a provider, and "
        "the most inventories of one reshape; a request with more is answered with 400.",
    ),
    cfg.IntOpt(
        "max_allocations",
        default=LIMITS.max_allocations,
        min=1000,
        help="The most allocations that one request writes, for all its consumers together; a "
        "request with more is answered with 400.",
    ),
    cfg.IntOpt(
        "max_request_groups",
        default=LIMITS.max_request_groups,
        min=1,
        help="The most groups that a query for candidates may have; more are answered with 400.",
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
    "roost": ROOST,
}
