"""The options that `placement.conf` can set, by the names operators know."""

from __future__ import annotations

from oslo_config import cfg

from roost.configuration.network import NETWORK
from roost.model.limits import Limits
from roost.store.database import SILENCE_SECONDS, WAIT_SECONDS

_NIL_UUID = "00000000-0000-0000-0000-000000000000"
LIMITS = Limits()
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


def _limit(name: str, help_text: str, minimum: int = 1) -> cfg.IntOpt:
    return cfg.IntOpt(name, default=getattr(LIMITS, name), min=minimum, help=help_text)


# Limits and tokens, which the reference does not have.
ROOST = (
    cfg.StrOpt("tokens_file", help="The tokens of auth_strategy = tokens; see `roost token`."),
    cfg.IntOpt(
        "keystone_wait_seconds",
        default=10,
        min=1,
        help="Seconds for which a request waits for Keystone to check its token; then 503.",
    ),
    _limit("max_body_bytes", "The largest body of a request; more is answered with 413.", 1024),
    _limit("max_header_bytes", "The largest address and headers; more is answered with 431.", 1024),
    _limit("max_request_groups", "Groups of a query for candidates; more is answered with 400."),
    _limit("max_query_parameters", "Parameters of a query string; more is answered with 400.", 100),
    _limit("max_search_seconds", "CPU seconds of a search for candidates; then 503."),
    _limit(
        "search_wait_seconds",
        "Seconds that a search waits for others, or for all providers; then 503.",
    ),
    _limit(
        "max_provider_members",
        "Aggregates, traits or inventories that one request gives to a provider, and inventories "
        "of one reshape; more is answered with 400.",
        1000,
    ),
    _limit(
        "max_allocations",
        "Allocations that one request writes, for all its consumers; more is answered with 400.",
        1000,
    ),
    _limit("max_connections", "Connections of a worker; one more replaces the longest idle one."),
    _limit(
        "max_bodies_bytes", "All large bodies in a worker; one more is answered with 503.", 1024
    ),
    _limit(
        "max_unread_bytes",
        "All answers that clients of a worker have not read; beyond it, the slowest client is "
        "disconnected.",
        1024,
    ),
    _limit("header_seconds", "Time for the headers of a request to come."),
    _limit("body_seconds", "Time for the body of a request to come."),
    _limit("idle_seconds", "Time for which a connection is kept without a request."),
    _limit("unread_seconds", "Time for a client to read something of its answer."),
    _limit(
        "drain_seconds",
        "Time after SIGTERM in which `roost serve` answers on, and /readyz says 503.",
        0,
    ),
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
