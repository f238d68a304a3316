"""All metrics that processes count, each with its name, its meaning and its labels."""

from __future__ import annotations

from roost.metrics.counting import Counter, Gauge, Histogram, Metric, Record

# Small requests take a tenth of a millisecond, large searches some seconds.
_DURATION_BOUNDS = (
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
)  # fmt: skip

REQUESTS = Counter(
    "roost_requests_total",
    "Answered requests.",
    ("route", "method", "version", "status"),
)
DURATION = Histogram(
    "roost_request_duration_seconds",
    "Time to make an answer, without the time that a client takes to read it.",
    ("route", "method"),
    _DURATION_BOUNDS,
)
RESPONSE_BYTES = Counter("roost_response_bytes_total", "Bytes of the bodies of all answers.")
STAGE_SECONDS = Counter(
    "roost_stage_seconds_total", "Time that requests spent in a stage.", ("stage",)
)
STAGE_REQUESTS = Counter("roost_stage_requests_total", "Requests that passed a stage.", ("stage",))
IN_FLIGHT = Gauge("roost_requests_in_flight", "Requests that are being answered.")

SEARCHES = Counter(
    "roost_candidate_answers_total",
    "Answers with candidates: from a search, or kept from an earlier one.",
    ("source",),
)
SEARCHED_BLOCKS = Counter(
    "roost_searched_blocks_total", "Blocks of about 4,096 providers that searches looked at."
)
CANDIDATES = Counter(
    "roost_candidates_returned_total",
    "Candidates in answers of known size; answers in pieces count their pieces' bytes only.",
)
TRUNCATED = Counter(
    "roost_candidate_answers_truncated_total",
    "Answers with candidates that a maximum or the effort of the search cut short.",
)
EMPTY_ANSWERS = Counter(
    "roost_empty_answers_total",
    "Answers without candidates whose reason an operator asked for, by the stage that ends them.",
    ("stage",),
)

LOOK_FAILURES = Counter("roost_journal_look_failures_total", "Looks into the journal that failed.")
JOURNAL_ROWS = Counter("roost_journal_rows_read_total", "Rows of the journal that were read.")
PRUNED_ROWS = Counter("roost_journal_rows_pruned_total", "Old rows of the journal, deleted.")
LAST_LOOK = Gauge(
    "roost_journal_last_look_timestamp_seconds",
    "When the last successful look into the journal began: that of the worker that is most behind.",
)
REFRESHES = Counter(
    "roost_forest_refreshes_total",
    "Changes of the forest: new usages from the journal, or trees read again.",
    ("kind",),
)
REBUILDS = Counter("roost_forest_rebuilds_total", "How often all providers were read.")
REBUILD_SECONDS = Counter(
    "roost_forest_rebuild_seconds_total", "Time that reading all providers took."
)

CLAIMS = Counter(
    "roost_claims_total",
    "Consumers whose allocations were written (claimed) or removed (released).",
    ("kind",),
)
CONFLICTS = Counter(
    "roost_conflicts_total", "Requests that were refused with 409, by cause.", ("cause",)
)
RETRIES = Counter(
    "roost_write_retries_total", "Writes that ran again in another transaction.", ("cause",)
)
DATABASE_FAILURES = Counter(
    "roost_database_failures_total",
    "Requests that failed because of the database.",
    ("cause",),
)

POOL_CONNECTIONS = Gauge(
    "roost_database_connections", "Open connections to the database.", ("pool", "state")
)
CONNECTIONS = Gauge(
    "roost_server_connections", "Connections of clients to `roost serve`.", ("state",)
)
FOLLOWERS = Gauge(
    "roost_followers", "Clients that follow `/roost/changes`, or wait for a change there."
)
THREADS = Gauge("roost_server_threads", "Threads of `roost serve` that answer.", ("state",))
ACCEPTED = Counter(
    "roost_server_connections_accepted_total", "Connections that `roost serve` accepted."
)
EVICTED = Counter(
    "roost_server_connections_evicted_total",
    "Connections that `roost serve` closed because new ones came.",
)
REFUSED = Counter(
    "roost_server_refusals_total",
    "Bytes of clients that `roost serve` refused as a request, by status.",
    ("status",),
)
HOUSEKEEPING_FAILURES = Counter(
    "roost_housekeeping_failures_total", "Chores of the housekeeping that failed.", ("chore",)
)

QUERY_FIGURES = Record(
    "roost_fits",
    ("name",),
    {
        "roost_fits_timestamp_seconds": "The moment for which the figures of a query hold.",
        "roost_fits": "How many more consumers with a query fit, at least.",
        "roost_fits_at_most": "How many more consumers with a query fit, at most.",
        "roost_feasible": "Whether one more consumer with a query fits: 1 or 0.",
    },
)

LOST_SERIES = Counter(
    "roost_metrics_lost_series_total",
    "Series that a worker does not show, because its memory for metrics is full.",
)

# Gauges whose value is the smallest of all processes that have one, not the sum.
SMALLEST = frozenset({LAST_LOOK.name})

COUNTED: tuple[Metric, ...] = tuple(
    metric for metric in list(globals().values()) if isinstance(metric, Metric)
)
