"""`roost agent`: reports this host at every interval."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import click

from roost.cli.agent_events import JsonEvents, TextEvents
from roost.cli.agent_log import logging_to
from roost.cli.connection import ConnectionSettings, connection_options
from roost.cli.service_command import ServiceCommand
from roost.client.agent.agent import Agent
from roost.client.agent.watchdog import WatchdogTransport
from roost.client.drivers.driver import DeclaringDriver, Driver
from roost.client.drivers.loading import load_driver
from roost.client.errors import NotConfigured
from roost.client.ownership.declarative_reporter import DeclarativeReporter, Report
from roost.client.ownership.store import FileOwnershipStore
from roost.client.reporting.reporter import Reporter
from roost.model.identifiers import canonical_uuid, is_uuid
from roost.systemd import SystemdNotifier


@click.command(
    cls=ServiceCommand,
    short_help="Describe this host to a placement server, and keep that true.",
    epilog="""\b
Examples:
  roost agent --driver linux --once --dry-run      what would it report?
  roost agent --driver linux --interval 60
  roost agent --driver file --option path=/etc/roost/tree.yaml --os-cloud mycloud
  roost agent --driver mypackage.mymodule:MyDriver --option size=8

\b
Signals: SIGHUP report now, SIGTERM or Ctrl-C finish the report under way and end.
Exit status: 0 told to end, or --once done; 1 --once or --dry-run failed;
78 wrong options or configuration, which trying again does not mend.
""",
)
@click.option(
    "--driver",
    "driver_name",
    required=True,
    metavar="NAME",
    help="What describes the host: `linux` (this machine), `libvirt` (as libvirt sees it), `file` "
    "(a tree file), or a driver of your own as package.module:Class.",
)
@click.option(
    "--option",
    "options",
    multiple=True,
    metavar="KEY=VALUE",
    help="An option of the driver, such as path=tree.yaml for `file`; may be repeated.",
)
@click.option(
    "--name",
    metavar="NAME",
    default=socket.gethostname,
    show_default="this host's name",
    help="Name of the provider that stands for the host.",
)
@click.option(
    "--uuid",
    metavar="UUID",
    help="Its uuid. [default: that of the provider with this name, or a new one]",
)
@click.option(
    "--interval",
    metavar="SECONDS",
    type=click.FloatRange(1, 86400),
    default=60.0,
    show_default=True,
    help="Time between two reports.",
)
@click.option(
    "--owner",
    metavar="NAME",
    default="agent",
    show_default=True,
    help="Name to write under. The agent leaves alone what other owners wrote.",
)
@click.option(
    "--records",
    metavar="DIRECTORY",
    type=click.Path(path_type=Path, file_okay=False),
    help="Directory with the records of what this owner wrote. [default: $STATE_DIRECTORY, or a "
    "directory of the user such as ~/.local/state/roost/owners]",
)
@click.option(
    "--adopt",
    is_flag=True,
    help="Treat all that is on the declared providers as written by this owner: what the driver "
    "does not declare is removed.",
)
@click.option("--once", is_flag=True, help="Report once, then end.")
@click.option("--dry-run", is_flag=True, help="Print what would be written, then end.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, an object for each event.")
@connection_options
def agent(
    *,
    connection: ConnectionSettings,
    driver_name: str,
    options: tuple[str, ...],
    name: str,
    uuid: str | None,
    interval: float,
    owner: str,
    records: Path | None,
    adopt: bool,
    once: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Describe this host to a placement server, and keep the description true.

    The agent reports the host at every interval, writes what has changed, and prints a line for
    each change. While the server is down, the agent tries again.
    """
    events = JsonEvents() if as_json else TextEvents()
    # The first report follows at once, so a signal for a report is not needed before it.
    hangups_ignored = _handling({signal.SIGHUP: signal.SIG_IGN})
    with hangups_ignored, logging_to(events), connection.open() as transport:
        driver = load_driver(driver_name, _parse(options))
        store = FileOwnershipStore(owner, records)
        notifier = SystemdNotifier()
        reporter = Reporter(WatchdogTransport(transport, notifier.alive))
        declarative = DeclarativeReporter(reporter, owner, store, adopt=adopt)
        reports = _HostReport(declarative, driver, name, _checked(uuid))
        if dry_run:
            events.report("would change", reports.preview())
            return
        with store.held():
            if once:
                events.report("changed", reports.report())
                return
            running = Agent(
                reports.report,
                interval=interval,
                notifier=notifier,
                changed=lambda report: events.report("changed", report),
                failed=lambda text: events.say("failed", text),
                recovered=lambda text: events.say("recovered", text),
            )
            events.say(
                "started",
                f"reporting {name} to {transport} every {interval:g} seconds, as owner {owner}",
            )
            _run(running, reports)


class _HostReport:
    """The reports of one host by one driver, which edits the tree or declares it."""

    def __init__(
        self,
        reporter: DeclarativeReporter,
        driver: Driver | DeclaringDriver,
        name: str,
        uuid: str | None,
    ) -> None:
        self._reporter = reporter
        self._driver = driver
        self._name = name
        self._uuid = uuid
        self.reads_again = False
        """Whether the next report reads the tree from the server instead of the cache."""

    def report(self) -> Report:
        if self.reads_again:
            self.reads_again = False
            self._reporter.reporter.forget()
        if isinstance(self._driver, DeclaringDriver):
            return self._reporter.report(self._driver, self._name, self._uuid)
        return Report(self._reporter.reporter.report(self._driver, self._name, self._uuid))

    def preview(self) -> Report:
        if isinstance(self._driver, DeclaringDriver):
            declaration = self._driver.declare(self._name)
            return self._reporter.preview(declaration, self._name, self._uuid)
        return Report(self._reporter.reporter.preview(self._driver, self._name, self._uuid))


def _run(running: Agent, reports: _HostReport) -> None:
    def stop(number: int, _frame: FrameType | None) -> None:
        # A second signal ends the agent during a report.
        signal.signal(number, signal.SIG_DFL)
        running.stop()

    def report_now(_number: int, _frame: FrameType | None) -> None:
        reports.reads_again = True
        running.report_now()

    handlers = {signal.SIGTERM: stop, signal.SIGINT: stop, signal.SIGHUP: report_now}
    try:
        with _handling(handlers):
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


def _checked(uuid: str | None) -> str | None:
    if uuid is None or is_uuid(uuid):
        return uuid and canonical_uuid(uuid)
    raise NotConfigured(f"--uuid {uuid}: that is no UUID; leave the option out for a new one")


def _parse(options: tuple[str, ...]) -> dict[str, str]:
    parsed = {}
    for option in options:
        key, equals, value = option.partition("=")
        if not equals or not key:
            raise NotConfigured(f"--option {option}: write it as KEY=VALUE")
        parsed[key] = value
    return parsed
