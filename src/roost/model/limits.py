"""Limits of requests: no real client reaches them, and no request below them stops the service."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """What clients may ask for; the options of `[roost]` have these names and meanings.

    Each worker process of `roost serve` has the limits of connections for itself.
    """

    # The body of a request; more is answered with 413.
    max_body_bytes: int = 16 * 1024 * 1024
    # Request line and headers; more is answered with 431.
    max_header_bytes: int = 64 * 1024
    # Connections at once. A further connection closes the connection that is idle for longest.
    max_connections: int = 10_000
    # All large bodies at once; a further large body is answered with 503.
    max_bodies_bytes: int = 64 * 1024 * 1024
    # All answers that clients have not read yet. Above it, the server disconnects the client that
    # is slowest.
    max_unread_bytes: int = 256 * 1024 * 1024
    # From a new connection, or the first byte of a request, to the end of the headers.
    header_seconds: int = 10
    # From the end of the headers to the end of the body.
    body_seconds: int = 60
    # A kept connection without a request.
    idle_seconds: int = 75
    # A client that reads nothing of its answer.
    unread_seconds: int = 30
    # After SIGTERM: the server answers on, and `/readyz` tells proxies to ask another server.
    drain_seconds: int = 0
    # The aggregates, traits or inventories of a provider; in a reshape, all inventories together.
    # Nova reports some hundred, and reshapes one tree at a time.
    max_provider_members: int = 10_000
    # The allocations of a request, one for each provider and class; an emptied consumer is one.
    # Nova claims for two consumers at most, and reshapes the servers of one host.
    max_allocations: int = 10_000
    # The request groups of a query for candidates. Nova sends one group for the flavor, and one or
    # two for each numbered group, port and device: some dozens for the largest server.
    max_request_groups: int = 256
    # The parameters of a query string. The largest server needs some hundred.
    max_query_parameters: int = 4000
    # The CPU time of a search for candidates. Usual ones need milliseconds, and packings that look
    # endless are given up after two seconds. So only enormous answers reach it.
    max_search_seconds: int = 10
    # How long a large search may wait for others, all its waits together; and how long any search
    # may wait until all providers are read.
    search_wait_seconds: int = 60
