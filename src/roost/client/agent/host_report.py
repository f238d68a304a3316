"""The report of one host by one driver, which declares the host or edits its tree."""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Callable
from typing import Any

from roost.client.declaration import Declaration
from roost.client.drivers.calls import calling, declared_by
from roost.client.drivers.driver import DeclaringDriver, Driver
from roost.client.ownership.declarative_reporter import DeclarativeReporter, Report
from roost.client.provider_tree import ProviderTree
from roost.client.reporting.reporter import Reporter

LOG = logging.getLogger(__name__)


class HostReport:
    """Reports a host again and again. A driver that edits the tree needs no `declarative`."""

    def __init__(
        self,
        driver: Driver | DeclaringDriver,
        name: str,
        uuid: str | None,
        reporter: Reporter,
        declarative: DeclarativeReporter | None,
    ) -> None:
        self._driver = driver
        self._name = name
        self._uuid = uuid
        self._reporter = reporter
        self._declarative = declarative
        self.reads_again = False
        """Whether the next report reads the tree from the server instead of the cache."""
        self.providers = 0
        """How many providers the driver found at the last report."""

    def report(self) -> Report:
        """Make one report."""
        if self.reads_again:
            self.reads_again = False
            self._reporter.forget()
        if self._declarative is not None:
            return self._declarative.report(_Declaring(self), self._name, self._uuid)
        return Report(self._reporter.report(_Editing(self), self._name, self._uuid))

    def preview(self) -> Report:
        """What a report would change; nothing is written."""
        if self._declarative is not None:
            return self._declarative.preview_report(_Declaring(self), self._name, self._uuid)
        return Report(self._reporter.preview(_Editing(self), self._name, self._uuid))

    def found(self, providers: int, began: float) -> None:
        """Keep the number of providers that the driver has found since a moment."""
        self.providers = providers
        seconds = time.monotonic() - began
        LOG.info("The driver read %s in %.2f s: %d providers", self._name, seconds, providers)

    @property
    def driver(self) -> Any:
        """The driver of the host."""
        return self._driver


class _Declaring(DeclaringDriver):
    """Counts what the driver of a host declares."""

    def __init__(self, host: HostReport) -> None:
        self._host = host
        self.declares_intent: bool = getattr(host.driver, "declares_intent", False)

    def declare(self, nodename: str) -> Declaration:
        began = time.monotonic()
        declaration = declared_by(self._host.driver, nodename)
        self._host.found(len(declaration.providers), began)
        return declaration


class _Editing:
    """Counts what the driver of a host leaves in the tree."""

    def __init__(self, host: HostReport) -> None:
        update = host.driver.update_provider_tree

        # The reporter sees the arguments of the driver itself.
        @functools.wraps(update)
        def counted(provider_tree: ProviderTree, nodename: str, **more: Any) -> None:
            began = time.monotonic()
            # A driver that has the allocations may not ask for them again.
            with calling(host.driver, may_reshape=more.get("allocations") is None):
                update(provider_tree, nodename, **more)
                # A driver that removes the host itself fails here.
                members = provider_tree.get_provider_uuids_in_tree(nodename)
            host.found(len(members), began)

        self.update_provider_tree: Callable[..., None] = counted
