"""A reload: read the configuration again, and put into force what can change in a running process.

A configuration that cannot be used is refused as a whole, and the previous one stays in force.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TypeAlias

from roost.api.observation.query_counting import named_queries
from roost.api.policy.policy import Policy
from roost.configuration.in_force import changed_options, needs_restart
from roost.configuration.logs import replace_logging
from roost.configuration.settings import Settings
from roost.model.errors import OperatorError

_LOG = logging.getLogger(__name__)

Preparation: TypeAlias = Callable[[Settings], Callable[[], None]]
"""Reads what the settings name, or raises an error. The result puts it into force and is safe."""


def check_files(settings: Settings) -> Callable[[], None]:
    """Refuse a policy or queries that cannot be used, in a process that answers no request."""
    Policy(settings.oslo)
    named_queries(settings)
    return lambda: None


class Reloader:
    """The settings of a process, and how it replaces them."""

    def __init__(
        self,
        settings: Settings,
        read: Callable[[], Settings],
        preparations: Sequence[Preparation],
    ) -> None:
        self._at_start = settings
        self._in_force = settings
        self._read = read
        self._preparations = preparations

    @property
    def in_force(self) -> Settings:
        """The settings that the last reload which worked has read; at first, those of the start."""
        return self._in_force

    def reload(self) -> bool:
        """Put the new configuration into force; return whether it can be used."""
        try:
            fresh = self._read()
            commits = [prepare(fresh) for prepare in self._preparations]
            replace_logging(self._in_force, fresh)
        except OperatorError as error:
            _LOG.error("%s", _refusal(error.explanation))
            return False
        except Exception:
            _LOG.exception("%s", _refusal("An unexpected error."))
            return False
        for commit in commits:
            commit()
        self._in_force = fresh
        return True

    def reload_and_tell(self) -> bool:
        """The same, and the log says what changed and what needs a restart."""
        before = self._in_force
        if not self.reload():
            return False
        _LOG.info("The configuration was read again%s", _changes(before, self._in_force))
        waiting = [
            str(option)
            for option in changed_options(self._at_start, self._in_force)
            if needs_restart(option)
        ]
        if waiting:
            _LOG.warning("These changes need a restart: %s", ", ".join(waiting))
        return True


def _refusal(why: str) -> str:
    return f"The new configuration is refused, and the previous one stays in force. {why}"


def _changes(before: Settings, after: Settings) -> str:
    names = [str(option) for option in changed_options(before, after) if not needs_restart(option)]
    return f": {', '.join(names)} changed" if names else "; policy and query files are read anew"
