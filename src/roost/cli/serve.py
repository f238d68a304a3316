"""`roost serve`: the service, in the foreground."""

from __future__ import annotations

import ipaddress
import os
import socket
import sys
from collections.abc import Callable
from dataclasses import replace

import click
from rich.console import Console

from roost.api.application import Application
from roost.api.authentication import strategy as check_strategy
from roost.bootstrap import open_database
from roost.cli.options import configuration_options, read_settings
from roost.cli.terminal import plain
from roost.configuration.logs import set_up_logging
from roost.configuration.settings import (
    CONFIG_FILES_VARIABLE,
    ConfigurationError,
    Settings,
)
from roost.demo.load import DemoSummary, load_demo
from roost.metrics.counting import TALLY
from roost.metrics.sampling import watch_server
from roost.model.limits import Limits
from roost.server.supervisor import Supervisor
from roost.server.worker import bind, run_worker
from roost.store.database import Database
from roost.store.driver_errors import explained, shown_url

_WORKERS_MAX = 4


@click.command(
    short_help="Serve the Placement API.",
    epilog="""\b
Examples:
  roost serve --demo
  roost serve --db postgresql://roost@db.example/placement --workers 4
  roost serve --config-file /etc/placement/placement.conf --host 0.0.0.0
""",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen at.")
@click.option("--port", default=8778, show_default=True, type=click.IntRange(1, 65535))
@click.option(
    "--workers",
    type=click.IntRange(1, 256),
    default=lambda: min(_WORKERS_MAX, os.cpu_count() or 1),
    show_default=f"one per core, at most {_WORKERS_MAX}",
    help="Processes that answer requests.",
)
@click.option("--demo", is_flag=True, help="Fill an empty database with a demo cloud.")
@click.option(
    "--allow-clients-without-authentication",
    "open_to_all",
    is_flag=True,
    help="Serve noauth2 on an address that other machines can reach.",
)
@configuration_options
def serve(
    *,
    host: str,
    port: int,
    workers: int,
    demo: bool,
    open_to_all: bool,
    config_files: tuple[str, ...],
    database_url: str | None,
) -> None:
    """Serve the Placement API until SIGTERM or Ctrl-C, which let requests in flight finish."""
    settings = read_settings(config_files, database_url)
    set_up_logging(settings)
    strategy = settings.auth_strategy or "noauth2"
    if strategy == "noauth2" and not _is_loopback(host) and not open_to_all:
        raise ConfigurationError(
            f"With noauth2 every client that reaches {host} may do everything. Listen at "
            "127.0.0.1, configure [api]auth_strategy, or give the option "
            "`--allow-clients-without-authentication`."
        )
    check_strategy(strategy)
    _check_port(host, port)
    # The workers of this server, and no other process, share its metrics.
    TALLY.open_own()
    database = open_database(settings)
    # The workers do the same. Here a mistake shows before they start, and only once.
    Application(replace(settings, auth_strategy=strategy), database)
    console = Console(stderr=True)
    if demo:
        with explained(database.url):
            loaded = load_demo(database)
        console.print(plain(_demo_line(loaded, database)), soft_wrap=True)
    line = plain("Roost", "bold")
    shown_host = f"[{host}]" if ":" in host else host
    line.append_text(
        plain(f" at http://{shown_host}:{port} on {shown_url(database.url)}, ", "not bold")
    )
    line.append_text(plain(f"{workers} worker{'s' if workers > 1 else ''}, {strategy}", "not bold"))
    console.print(line, soft_wrap=True)
    database.close()
    _tell_workers(settings, strategy)
    _run(host, port, workers, settings.limits)


def _demo_line(summary: DemoSummary, database: Database) -> str:
    if summary.loaded:
        return f"Demo cloud: {summary.providers} providers, {summary.consumers} consumers"
    return (
        "The database has providers already, so the demo cloud was not loaded. To start afresh, "
        f"stop the server and remove {shown_url(database.url)}"
    )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _check_port(host: str, port: int) -> None:
    """Refuse a port that another server uses, because the kernel would let both share it."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or "that is no name of a host"
        raise ConfigurationError(
            f"Roost cannot listen at {host}:{port}: {why}. Choose another --host or --port."
        ) from None


def _tell_workers(settings: Settings, strategy: str) -> None:
    """Put the settings into the environment, where `roost.wsgi` in each worker reads them."""
    os.environ[CONFIG_FILES_VARIABLE] = os.pathsep.join(settings.config_files)
    # In a configuration a dollar sign begins the name of an option.
    os.environ["OS_PLACEMENT_DATABASE__CONNECTION"] = settings.database.url.replace("$", "$$")
    os.environ["OS_API__AUTH_STRATEGY"] = strategy


def _run(host: str, port: int, workers: int, limits: Limits) -> None:
    def work(tell_ready: Callable[[], None]) -> None:
        run_worker(_load_application, limits, host, port, tell_ready, watch=watch_server)

    # Bound, but not listening: the workers listen at the same address.
    with bind(host, port):
        status = Supervisor(workers, work, limits.drain_seconds).run()
    sys.exit(status)


def _load_application() -> Application:
    # The import opens the database, and only workers need that.
    from roost.wsgi import application  # noqa: PLC0415

    return application
