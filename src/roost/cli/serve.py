"""`roost serve`: the service, in the foreground."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from roost.api.application import Application
from roost.api.authentication import check_strategy
from roost.bootstrap import create_application, open_database
from roost.cli.server.settings import configuration_options, read_settings
from roost.cli.shared.parameters import ServiceCommand, adding
from roost.cli.shared.terminal import plain
from roost.configuration.keystone_options import register_keystone_options
from roost.configuration.logs import log_unknown_names, set_up_logging
from roost.configuration.settings import (
    CONFIG_FILES_VARIABLE,
    ConfigurationError,
    NetworkSettings,
    Settings,
    load_settings,
)
from roost.demo.drawings import drawings
from roost.demo.load import DemoSummary, demo_cloud, load_demo
from roost.demo.world import World
from roost.hangups import keeping_hangups
from roost.metrics.counting import TALLY
from roost.metrics.sampling import watch_server
from roost.model.declared_options import declared_options
from roost.model.text import own_lines
from roost.reloading import Reloader, check_files
from roost.server.certificates import CertificateFiles, certificate_files, make_context
from roost.server.listening import Place, TcpPlace, UnixPlace, inherited_places
from roost.server.supervisor import Supervisor, WorkerLink, call_at_reload_signal
from roost.server.worker import run_worker
from roost.store.connections.driver_errors import explained, shown_url
from roost.store.database import Database

_HOST = "127.0.0.1"
_PORT = 8778

_WORKERS_MAX = 4


def _places(
    host: str | None, port: int | None, unix_socket: str | None, socket_mode: int
) -> list[Place]:
    """Where to listen: at the default port unless the operator names anything else."""
    places = inherited_places(os.environ)
    if unix_socket is not None:
        places.append(UnixPlace(unix_socket, socket_mode))
    if not places or host is not None or port is not None:
        places.append(TcpPlace(_HOST if host is None else host, port or _PORT))
    return places


def _file_mode(_context: click.Context, _option: click.Parameter, value: str) -> int:
    """The mode of a file as a number, from its octal digits."""
    if not (value.isdigit() and set(value) <= set("01234567") and int(value, 8) <= 0o777):
        raise click.BadParameter(f"{value} is no mode of a file; give octal digits such as 660.")
    return int(value, 8)


# These stand in the configuration, too; the command line takes precedence.
_CONFIGURED = declared_options(NetworkSettings)
_METAVARS = {"tls_cert": "FILE", "tls_key": "FILE", "tls_client_ca": "FILE", "prefix": "PATH"}


def _with_network(settings: Settings, given: Mapping[str, str | None]) -> Settings:
    """The settings with what the command line gives; an empty name of a file means none."""
    values = {
        name: _CONFIGURED[name].read(text) for name, text in given.items() if text is not None
    }
    return replace(settings, network=replace(settings.network, **values))


_network_options = adding(
    click.option("--host", help=f"Address to listen at. [default: {_HOST}]"),
    click.option(
        "--port", type=click.IntRange(1, 65535), help=f"Port to listen at. [default: {_PORT}]"
    ),
    click.option(
        "--unix-socket",
        metavar="PATH",
        help="Listen at a unix socket: instead of a port, or besides --host and --port.",
    ),
    click.option(
        "--socket-mode",
        callback=_file_mode,
        metavar="MODE",
        default="660",
        show_default=True,
        help="The mode of its file.",
    ),
    *(
        click.option(
            f"--{name.replace('_', '-')}",
            metavar=metavar,
            help=f"{_CONFIGURED[name].meaning} [default: [roost]{name}]",
        )
        for name, metavar in _METAVARS.items()
    ),
)


@click.command(
    cls=ServiceCommand,
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

\b
Exit status: 0 told to end; 1 it failed, for instance because the database does not answer;
78 wrong options or configuration, which trying again does not mend.
""",
)
@_network_options
@click.option(
    "--workers",
    type=click.IntRange(1, 256),
    default=lambda: min(_WORKERS_MAX, os.cpu_count() or 1),
    show_default=f"one per core, at most {_WORKERS_MAX}",
    help="Processes that answer requests.",
)
@click.option("--demo", is_flag=True, help="Fill an empty database with a demo cloud.")
@click.option(
    "--demo-worlds",
    is_flag=True,
    help="Fill it with the small clouds that the documents of the Placement API draw.",
)
@click.option(
    "--allow-clients-without-authentication",
    "open_to_all",
    is_flag=True,
    help="Serve noauth2 on an address that other machines can reach.",
)
@configuration_options
def serve(
    *,
    host: str | None,
    port: int | None,
    unix_socket: str | None,
    socket_mode: int,
    workers: int,
    demo: bool,
    demo_worlds: bool,
    open_to_all: bool,
    config_files: tuple[str, ...],
    database_url: str | None,
    **network: Any,
) -> None:
    """Serve the Placement API until SIGTERM or Ctrl-C, which let requests in flight finish.

    SIGHUP reads the policy, the options of the log and the queries of /metrics again.
    """
    with keeping_hangups():
        settings = _with_network(read_settings(config_files, database_url), network)
        set_up_logging(settings)
        settings = replace(settings, auth_strategy=settings.auth_strategy or "noauth2")
        places = _places(host, port, unix_socket, socket_mode)
        service = _Service(settings, places, workers, database_url)
        worlds = _demo(cloud=demo, worlds=demo_worlds)
        status = _start(service, settings, worlds=worlds, open_to_all=open_to_all)
    sys.exit(status)


def _demo(*, cloud: bool, worlds: bool) -> Sequence[World]:
    """What an empty database is filled with."""
    drawn = list(drawings().values()) if worlds else []
    return [*drawn, demo_cloud()] if cloud else drawn


def _start(
    service: _Service, settings: Settings, *, worlds: Sequence[World], open_to_all: bool
) -> int:
    """Check everything, then serve; the exit status."""
    if settings.auth_strategy == "noauth2" and not open_to_all:
        _check_local(service.places)
    check_strategy(settings)
    service.check_network()
    console = Console(stderr=True)
    for link in service.links():
        console.print(plain(f"The pages: {link}/ui/", "bold"), soft_wrap=True)
    # The workers of this server, and no other process, share its metrics.
    TALLY.open_own()
    database = open_database(settings)
    # The workers do the same. Here a mistake shows before they start, and only once.
    Application(settings, database)
    if worlds:
        with explained(database.url):
            loaded = load_demo(database, worlds)
        console.print(plain(_demo_lines(loaded, worlds, database)), soft_wrap=True)
    console.print(service.first_line(database), soft_wrap=True)
    database.close()
    return service.run()


class _Service:
    """What runs: workers at some places, with the settings of the command line and the files."""

    def __init__(
        self, settings: Settings, places: list[Place], workers: int, database_url: str | None
    ) -> None:
        self._settings = settings
        self._workers = workers
        self._database_url = database_url
        self.places = places
        network = settings.network
        self._files = certificate_files(network.tls_cert, network.tls_key, network.tls_client_ca)
        self._reloader = Reloader(settings, self._read_again, [check_files])

    def check_network(self) -> None:
        """Refuse places and certificates that cannot be used."""
        if self._files is not None:
            # The workers read the files, too.
            make_context(self._files)
        for place in self.places:
            place.check()

    def links(self) -> list[str]:
        """Where a browser finds the service."""
        prefix = self._settings.network.prefix
        shown = (_shown(place, self._files, prefix) for place in self.places)
        return [link for link in shown if link.startswith("http")]

    def first_line(self, database: Database) -> Text:
        """The line that says where the service is."""
        prefix = self._settings.network.prefix
        shown = ", ".join(_shown(place, self._files, prefix) for place in self.places)
        number = f"{self._workers} worker{'s' if self._workers > 1 else ''}"
        line = plain("Roost", "bold")
        rest = f" at {shown} on {shown_url(database.url)}, {number}, {self._settings.auth_strategy}"
        line.append_text(plain(rest, "not bold"))
        return line

    def run(self) -> int:
        """The exit status, after all workers have ended."""
        supervisor = Supervisor(
            self._workers,
            self._work,
            self._reloader.reload_and_tell,
            drain_seconds=self._settings.limits.drain_seconds,
            leave=self._leave,
        )
        try:
            for place in self.places:
                place.hold()
            return supervisor.run()
        finally:
            self._leave()

    def _work(self, link: WorkerLink) -> None:
        # After a refused reload the files cannot be used, so a new worker does not read them.
        settings = _for_worker(self._settings, self._reloader.in_force)
        # Only in the worker: the supervisor compares the files with its own environment.
        _fix_for_reloads(self._settings)
        run_worker(
            partial(_load_application, settings, link),
            self._settings.limits,
            self.places,
            link.tell_ready,
            self._files,
            watch=watch_server,
        )

    def _read_again(self) -> Settings:
        fresh = load_settings(self._settings.config_files, self._database_url)
        log_unknown_names(fresh)
        return fresh

    def _leave(self) -> None:
        for place in self.places:
            place.leave()


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


def _demo_lines(summary: DemoSummary, worlds: Sequence[World], database: Database) -> str:
    if not summary.loaded:
        return (
            "The database has providers already, so no demo was loaded. To start afresh, "
            f"stop the server and remove {shown_url(database.url)}"
        )
    clouds = "Demo cloud" if len(worlds) == 1 else f"{len(worlds)} demo clouds"
    return own_lines(
        f"{clouds}: {summary.providers} providers, {summary.consumers} consumers",
        *(remark for world in worlds for remark in world.remarks),
    )


def _for_worker(at_start: Settings, in_force: Settings) -> Settings:
    """The settings of a new worker: those of the start, with what a reload puts into force."""
    if at_start.auth_strategy == "keystone":
        # The new files may name another strategy, which needs a restart.
        register_keystone_options(in_force.oslo)
    watch = replace(at_start.watch, queries=in_force.watch.queries)
    return replace(at_start, oslo=in_force.oslo, watch=watch)


def _fix_for_reloads(settings: Settings) -> None:
    """Put into the environment what no file may change when this worker reads its files again."""
    os.environ[CONFIG_FILES_VARIABLE] = os.pathsep.join(settings.config_files)
    # In a configuration a dollar sign begins the name of an option.
    os.environ["OS_PLACEMENT_DATABASE__CONNECTION"] = settings.database.url.replace("$", "$$")
    os.environ["OS_API__AUTH_STRATEGY"] = settings.auth_strategy or ""
    os.environ["OS_ROOST__PREFIX"] = settings.network.prefix


def _load_application(settings: Settings, link: WorkerLink) -> Application:
    """The application of a worker, which reads its configuration again when it is told to."""
    application = create_application(settings)
    reloader = Reloader(settings, load_settings, [application.prepare_reload])

    def reload() -> None:
        reloader.reload()
        link.tell_reloaded()

    call_at_reload_signal(reload)
    return application
