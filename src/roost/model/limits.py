"""Limits of requests: no real client reaches them, and no request below them stops the service."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from roost.model.declared_options import option

_limit = partial(option, minimum=1)


@dataclass(frozen=True, slots=True)
class Limits:
    """What clients may ask for. Each limit is an option of `[roost]` under its name.

    Each worker process of `roost serve` has the limits of connections for itself.
    """

    max_body_bytes: int = _limit(
        16 * 1024 * 1024, "The largest body of a request; more is answered with 413.", minimum=1024
    )
    max_header_bytes: int = _limit(
        64 * 1024, "The largest address and headers; more is answered with 431.", minimum=1024
    )
    # Nova sends one group for the flavor, and one or two for each numbered group, port and device:
    # some dozens for the largest server.
    max_request_groups: int = _limit(
        256, "Groups of a query for candidates; more is answered with 400."
    )
    # The largest server needs some hundred.
    max_query_parameters: int = _limit(
        4000, "Parameters of a query string; more is answered with 400.", minimum=100
    )
    # Usual searches need milliseconds, and packings that look endless are given up after two
    # seconds. So only enormous answers reach it.
    max_search_seconds: int = _limit(10, "CPU seconds of a search for candidates; then 503.")
    # All waits of a search together.
    search_wait_seconds: int = _limit(
        60, "Seconds that a search waits for others, or for all providers; then 503."
    )
    # Nova reports some hundred, and reshapes one tree at a time.
    max_provider_members: int = _limit(
        10_000,
        "Aggregates, traits or inventories that one request gives to a provider, and inventories "
        "of one reshape; more is answered with 400.",
        minimum=1000,
    )
    # One allocation for each provider and class; an emptied consumer is one. Nova claims for two
    # consumers at most, and reshapes the servers of one host.
    max_allocations: int = _limit(
        10_000,
        "Allocations that one request writes, for all its consumers; more is answered with 400.",
        minimum=1000,
    )
    max_connections: int = _limit(
        10_000, "Connections of a worker; one more replaces the longest idle one."
    )
    max_bodies_bytes: int = _limit(
        64 * 1024 * 1024,
        "All large bodies in a worker; one more is answered with 503.",
        minimum=1024,
    )
    max_unread_bytes: int = _limit(
        256 * 1024 * 1024,
        "All answers that clients of a worker have not read; beyond it, the slowest client is "
        "disconnected.",
        minimum=1024,
    )
    # From a new connection, or the first byte of a request, to the end of the headers.
    header_seconds: int = _limit(10, "Time for the headers of a request to come.")
    # From the end of the headers to the end of the body.
    body_seconds: int = _limit(60, "Time for the body of a request to come.")
    idle_seconds: int = _limit(75, "Time for which a connection is kept without a request.")
    unread_seconds: int = _limit(30, "Time for a client to read something of its answer.")
    max_followers: int = _limit(
        2000,
        "Clients of a worker that wait for changes or follow them; one more is answered with 503.",
    )
    # A client continues from its cursor, and authenticates again.
    follow_seconds: int = _limit(
        600, "Time after which a stream of changes ends, and its client asks again.", minimum=5
    )
    # `/readyz` tells proxies to ask another server.
    drain_seconds: int = _limit(
        0, "Time after SIGTERM in which `roost serve` answers on, and /readyz says 503.", minimum=0
    )
