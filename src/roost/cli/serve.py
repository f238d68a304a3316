"""`roost serve`: the service, in the foreground."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import click
from rich.console import Console

from roost.api.application import Application
from roost.api.authentication import strategy as check_strategy
from roost.bootstrap import open_database
from roost.cli.network_options import NetworkOptions, network_options
from roost.cli.options import configuration_options, read_settings
from roost.cli.terminal import plain
from roost.configuration.logs import set_up_logging
from roost.configuration.settings import (
    CONFIG_FILES_VARIABLE,
    ConfigurationError,
    Settings,
)
from roost.demo.load import DemoSummary, load_demo
from roost.model.limits import Limits
from roost.server.certificates import CertificateFiles, make_context
from roost.server.listening import Place
from roost.server.supervisor import Supervisor
from roost.server.worker import run_worker
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
\b
Networks:
  roost serve --tls-cert /etc/roost/cert.pem --tls-key /etc/roost/key.pem
  roost serve --unix-socket /run/roost/roost.sock --prefix /placement
""",
)
@network_options
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
    workers: int,
    demo: bool,
    open_to_all: bool,
    config_files: tuple[str, ...],
    database_url: str | None,
    **network_values: Any,
) -> None:
    """Serve the Placement API until SIGTERM or Ctrl-C, which let requests in flight finish."""
    network = NetworkOptions(**network_values)
    settings = read_settings(config_files, database_url)
    set_up_logging(settings)
    strategy = settings.auth_strategy or "noauth2"
    places = network.places()
    if strategy == "noauth2" and not open_to_all:
        _check_local(places)
    check_strategy(strategy)
    prefix = network.chosen_prefix(settings.network)
    files = network.certificate_files(settings.network)
    if files is not None:
        # The workers read the files, too. Here a mistake shows before they start, and only once.
        make_context(files)
    for place in places:
        place.check()
    database = open_database(settings)
    # The workers do the same.
    Application(replace(settings, auth_strategy=strategy), database)
    console = Console(stderr=True)
    if demo:
        with explained(database.url):
            loaded = load_demo(database)
        console.print(plain(_demo_line(loaded, database)), soft_wrap=True)
    line = plain("Roost", "bold")
    shown = ", ".join(_shown(place, files, prefix) for place in places)
    line.append_text(plain(f" at {shown} on {shown_url(database.url)}, ", "not bold"))
    line.append_text(plain(f"{workers} worker{'s' if workers > 1 else ''}, {strategy}", "not bold"))
    console.print(line, soft_wrap=True)
    database.close()
    _tell_workers(settings, strategy, prefix)
    _run(places, workers, settings.limits, files)


def _check_local(places: Sequence[Place]) -> None:
    """Refuse noauth2 at a place that other machines can reach."""
    for place in places:
        if not place.is_local:
            raise ConfigurationError(
                f"With noauth2 every client that reaches {place.shown} may do everything. Listen "
                "at 127.0.0.1, configure [api]auth_strategy, or give the option "
                "`--allow-clients-without-authentication`."
            )


def _shown(place: Place, files: CertificateFiles | None, prefix: str) -> str:
    if place.shown.startswith("unix:"):
        return place.shown
    return f"http{'s' if files else ''}://{place.shown}{prefix}"


def _demo_line(summary: DemoSummary, database: Database) -> str:
    if summary.loaded:
        return f"Demo cloud: {summary.providers} providers, {summary.consumers} consumers"
    return (
        "The database has providers already, so the demo cloud was not loaded. To start afresh, "
        f"stop the server and remove {shown_url(database.url)}"
    )


def _tell_workers(settings: Settings, strategy: str, prefix: str) -> None:
    """Put the settings into the environment, where `roost.wsgi` in each worker reads them."""
    os.environ[CONFIG_FILES_VARIABLE] = os.pathsep.join(settings.config_files)
    # In a configuration a dollar sign begins the name of an option.
    os.environ["OS_PLACEMENT_DATABASE__CONNECTION"] = settings.database.url.replace("$", "$$")
    os.environ["OS_API__AUTH_STRATEGY"] = strategy
    os.environ["OS_ROOST__PREFIX"] = prefix


def _run(
    places: Sequence[Place], workers: int, limits: Limits, files: CertificateFiles | None
) -> None:
    def work(tell_ready: Callable[[], None]) -> None:
        run_worker(_load_application, limits, places, tell_ready, files)

    def leave() -> None:
        for place in places:
            place.leave()

    try:
        for place in places:
            place.hold()
        status = Supervisor(workers, work, leave).run()
    finally:
        leave()
    sys.exit(status)


def _load_application() -> Application:
    # The import opens the database, and only workers need that.
    from roost.wsgi import application  # noqa: PLC0415

    return application
