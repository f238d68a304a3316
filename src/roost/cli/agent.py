"""`roost agent`: reports this host at every interval."""

from __future__ import annotations

import json
import logging
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import Any

import click
from rich.console import Console

import roost
from roost.cli.agent_configuration import (
    AgentCommand,
    AgentConfiguration,
    AgentOptions,
    config_option,
    variable_of_server,
)
from roost.cli.agent_events import WOULD_CHANGE, Events, JsonEvents, TextEvents, logging_to
from roost.cli.driver import driver_options, owner_option
from roost.cli.shared.connection import ConnectionSettings, service_options
from roost.cli.shared.parameters import NumberRange, records_option
from roost.cli.shared.terminal import plain
from roost.cli.tree.drawing import form_of, form_option, print_declaration
from roost.client.agent.agent import Agent
from roost.client.agent.host_report import HostReport, MeasuredReports, MetricsFile, ReportCounts
from roost.client.agent.request_log import LoggedTransport, WatchdogTransport
from roost.client.drivers.driver import DeclaringDriver, Driver, declared_offline
from roost.client.errors import DriverFailed
from roost.client.ownership.declarative_reporter import DeclarativeReporter
from roost.client.ownership.store import FileOwnershipStore, default_directory
from roost.client.ownership.three_way_merge import MISSING_REPORTS, MISSING_SECONDS
from roost.client.reporting.reporter import Reporter
from roost.client.transport.retrying import RetryingTransport
from roost.hangups import ControllingTerminal, keeping_hangups, obey_hangups
from roost.model.text import plain_number
from roost.systemd import SystemdNotifier

LOG = logging.getLogger(__name__)

_NO_FILE = "There is no configuration file"


@click.command(
    cls=AgentCommand,
    short_help="Describe this host to a placement server, and keep that true.",
    epilog="""\b
Examples:
  roost agent --driver linux --dry-run --offline   what is on this host?
  roost agent --driver linux --dry-run             what would a report change?
  roost agent --driver linux --interval 60
  roost agent --driver file --option path=tree.yaml --os-cloud mycloud
  roost agent --driver mypackage.mymodule:MyDriver --option size=8
  roost agent --config agent.yaml --show-config

\b
Every option may stand in the file of --config, and in a variable:
  `interval: 60` in agent.yaml, ROOST_AGENT_INTERVAL=60
  `options: {reserved_cpus: 2}`, ROOST_AGENT_OPTIONS="reserved_cpus=2"
The command line takes precedence over variables, and variables over the file.

\b
Signals: SIGHUP report now; SIGTERM or Ctrl-C finish the report, then end.
A closed terminal ends the agent, too.
Exit status: 0 told to end, or --once done; 1 --once or --dry-run failed;
78 wrong options or configuration, which trying again does not mend.
""",
)
@config_option
@click.option(
    "--show-config",
    is_flag=True,
    is_eager=True,
    help="Print each option in force and where it stands, without secrets, then end.",
)
@driver_options
@click.option(
    "--interval",
    metavar="SECONDS",
    type=NumberRange(1, 86400),
    default=60.0,
    show_default=True,
    help="Time between two reports.",
)
@owner_option
@records_option
@click.option(
    "--adopt",
    is_flag=True,
    help="Treat all that is on the declared providers as written by this owner: what the driver "
    "does not declare is removed.",
)
@click.option(
    "--accept-loss",
    is_flag=True,
    help="Withdraw at once what the driver no longer finds, however much it is.",
)
@click.option(
    "--missing-reports",
    metavar="NUMBER",
    type=click.IntRange(1),
    default=MISSING_REPORTS,
    show_default=True,
    help="Keep what the driver does not find until it is missing in so many reports.",
)
@click.option(
    "--missing-minutes",
    metavar="MINUTES",
    type=NumberRange(0),
    default=MISSING_SECONDS / 60,
    show_default=True,
    help="Keep what the driver does not find for so long, too.",
)
@click.option(
    "--metrics-file",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write metrics into this file (.prom) after each report, for the node exporter.",
)
@click.option("--once", is_flag=True, help="Report once, then end.")
@click.option("--dry-run", is_flag=True, help="Print what would be written, then end.")
@click.option(
    "--offline",
    is_flag=True,
    help="With --dry-run: ask no server, and print the tree that the driver declares.",
)
@form_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON, an object for each event.")
@click.option("-v", "--verbose", is_flag=True, help="Log what is read, and each report.")
@click.option("--debug", is_flag=True, help="Log each request, too.")
@service_options
def agent(
    *,
    connection: ConnectionSettings,
    config: Path | None,
    show_config: bool,
    driver_name: str | None,
    driver_options: tuple[tuple[str, str], ...],
    **values: Any,
) -> None:
    """Describe this host to a placement server, and keep the description true.

    The agent reports the host at every interval, writes what has changed, and prints a line for
    each change. While the server is down, the agent tries again.
    """
    del config, driver_name, driver_options
    options = AgentOptions(**values)
    configuration = AgentConfiguration(click.get_current_context(), connection, options)
    if show_config:
        _show(configuration)
        return
    if options.offline and not options.dry_run:
        raise click.UsageError("--offline prints what would be declared: add --dry-run.")
    if options.output is not None and not options.offline:
        raise click.UsageError("--output is a form of --dry-run --offline: add them.")
    events = JsonEvents() if options.as_json else TextEvents()
    level = logging.INFO if options.verbose else logging.WARNING
    with logging_to(events, logging.DEBUG if options.debug else level), _driver_failures_in_log():
        file = configuration.file
        LOG.info("%s", f"The configuration file is {file}" if file else _NO_FILE)
        for line, is_default in configuration.lines():
            if not is_default:
                LOG.info("%s", line)
        if options.offline:
            _print_offline(configuration)
        else:
            _report(configuration, events)


# -- printing


def _show(configuration: AgentConfiguration) -> None:
    """Print the configuration, and refuse one that the agent could not start with."""
    options = configuration.options
    if options.as_json:
        shown = [asdict(setting) for setting in configuration.settings()]
        click.echo(json.dumps({"file": configuration.file, "options": shown}, indent=2))
    else:
        console = Console(highlight=False)
        file = configuration.file or "none"
        console.print(plain(f"# configuration file: {file}", "bold"), soft_wrap=True)
        for line, is_default in configuration.lines():
            console.print(plain(line, "dim" if is_default else ""), soft_wrap=True)
    driver = configuration.load_driver()
    with configuration.naming("owner"):
        _store(driver, options)
    _publisher(configuration)
    with _opened(configuration) as transport:
        if options.as_json:
            return
        if isinstance(driver, DeclaringDriver) and options.records is None:
            click.echo(f"# directory of the records: {default_directory()}")
        variable = variable_of_server(configuration.connection, os.environ)
        click.echo(f"# server: {transport}" + (f"    # {variable}" if variable else ""))


def _print_offline(configuration: AgentConfiguration) -> None:
    options = configuration.options
    driver = configuration.load_driver()
    declaration = declared_offline(driver, options.name, options.uuid)
    owner = options.owner if isinstance(driver, DeclaringDriver) else None
    print_declaration(declaration, form_of(options.output, as_json=options.as_json), owner)


# -- reporting


def _report(configuration: AgentConfiguration, events: Events) -> None:
    options = configuration.options
    terminal = ControllingTerminal()
    runs_on = not (options.once or options.dry_run)
    # The first report follows at once, so a hangup waits until the agent can obey it.
    with keeping_hangups() if runs_on else nullcontext(), _opened(configuration) as transport:
        driver = configuration.load_driver()
        notifier = SystemdNotifier()
        requests = LoggedTransport(WatchdogTransport(transport, notifier.alive))
        reporter = Reporter(requests)
        store = _store(driver, options)
        host = HostReport(
            driver, options.name, options.uuid, reporter, _declarative(reporter, store, options)
        )
        if options.dry_run:
            events.report(WOULD_CHANGE, host.preview())
            return
        measured = MeasuredReports(host, lambda: requests.requests, _publisher(configuration))
        with store.held() if store is not None else nullcontext():
            if options.once:
                events.report("changed", measured.report())
                return
            events.say("started", _started(configuration, transport, store))
            running = Agent(
                measured.report,
                interval=options.interval,
                notifier=notifier,
                changed=lambda report: events.report("changed", report),
                failed=lambda text: events.say("failed", text),
                recovered=lambda text: events.say("recovered", text),
            )
            _run(running, host, terminal)


@contextmanager
def _driver_failures_in_log() -> Iterator[None]:
    """Log the traceback of a driver; the error itself has only its last line."""
    try:
        yield
    except DriverFailed as error:
        if error.__cause__ is not None:
            LOG.debug("The driver failed with an unexpected error", exc_info=error.__cause__)
        raise


@contextmanager
def _opened(configuration: AgentConfiguration) -> Iterator[RetryingTransport]:
    """A transport; an error about its configuration names the place of the address."""
    with ExitStack() as stack:
        with configuration.naming("url", "cloud", "token", "token_file"):
            transport = stack.enter_context(configuration.connection.open())
        yield transport


def _store(driver: Driver | DeclaringDriver, options: AgentOptions) -> FileOwnershipStore | None:
    """The records of the owner; a driver that edits the tree itself has none."""
    if not isinstance(driver, DeclaringDriver):
        return None
    return FileOwnershipStore(options.owner, options.records)


def _declarative(
    reporter: Reporter, store: FileOwnershipStore | None, options: AgentOptions
) -> DeclarativeReporter | None:
    if store is None:
        return None
    return DeclarativeReporter(
        reporter,
        options.owner,
        store,
        adopt=options.adopt,
        accept_loss=options.accept_loss,
        missing_reports=options.missing_reports,
        missing_seconds=options.missing_minutes * 60,
    )


def _publisher(configuration: AgentConfiguration) -> Callable[[ReportCounts], None]:
    """What takes the counts after each report: the metrics file, if there is one."""
    options = configuration.options
    if options.metrics_file is None:
        return lambda _: None
    driver = configuration.driver_name or ""
    labels = {"version": roost.__version__, "driver": driver, "owner": options.owner}
    with configuration.naming("metrics_file"):
        metrics = MetricsFile(options.metrics_file, labels)
        metrics.check()
    return metrics.write


def _started(
    configuration: AgentConfiguration,
    transport: RetryingTransport,
    store: FileOwnershipStore | None,
) -> str:
    options = configuration.options
    seconds = plain_number(options.interval)
    parts = [f"reporting {options.name} to {transport} every {seconds} seconds"]
    if store is not None:
        parts.append(f"as owner {options.owner}")
    if configuration.file is not None:
        parts.append(f"configured by {configuration.file}")
    return ", ".join(parts)


def _run(running: Agent, host: HostReport, terminal: ControllingTerminal) -> None:
    def stop(number: int, _frame: FrameType | None) -> None:
        # A second signal ends the agent during a report.
        signal.signal(number, signal.SIG_DFL)
        running.stop()

    def hang_up(number: int, frame: FrameType | None) -> None:
        if terminal.was_closed():
            stop(number, frame)
            return
        host.reads_again = True
        running.report_now()

    handlers = {signal.SIGTERM: stop, signal.SIGINT: stop, signal.SIGHUP: hang_up}
    try:
        with _handling(handlers):
            obey_hangups()
            running.run()
    finally:
        running.close()


@contextmanager
def _handling(
    handlers: Mapping[signal.Signals, Callable[[int, FrameType | None], None] | signal.Handlers],
) -> Iterator[None]:
    """Install signal handlers, and restore the earlier ones at the end."""
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
