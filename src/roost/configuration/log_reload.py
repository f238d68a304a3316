"""Other log options in a running process: new handlers and levels, and no line is lost."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from oslo_log import rate_limit

from roost.configuration.logs import set_up_logging
from roost.configuration.settings import Settings

# The loggers of Roost, and the one whose name the lines of requests have.
_OWN_LOGGERS = ("roost", "placement")


def replace_logging(before: Settings, after: Settings) -> None:
    """Log as `after` says. If that fails, everything stays as it is, and the error goes on.

    A log file is opened anew, so a rotated file is let go.
    """
    root = logging.getLogger()
    handlers = list(root.handlers)
    levels = _levels()
    if before.oslo.rate_limit_burst >= 1 and before.oslo.rate_limit_interval >= 1:
        rate_limit.uninstall_filter()
    with _lines_go_to(handlers):
        try:
            _forget_levels(before)
            set_up_logging(after)
        except BaseException:
            root.handlers[:] = handlers
            for logger, level in levels.items():
                logger.setLevel(level)
            raise
    for handler in handlers:
        if handler not in root.handlers:
            handler.close()


def _levels() -> dict[logging.Logger, int]:
    """The level of every logger."""
    known = list(logging.Logger.manager.loggerDict.values())
    loggers = [logger for logger in known if isinstance(logger, logging.Logger)]
    return {logger: logger.level for logger in (logging.getLogger(), *loggers)}


def _forget_levels(settings: Settings) -> None:
    """Drop the levels of single loggers, because the new options may not name them."""
    for pair in settings.oslo.default_log_levels:
        logging.getLogger(pair.partition("=")[0]).setLevel(logging.NOTSET)


@contextmanager
def _lines_go_to(handlers: Sequence[logging.Handler]) -> Iterator[None]:
    """Send the lines of Roost to these handlers, while the root logger has none for a moment."""
    loggers = [logging.getLogger(name) for name in _OWN_LOGGERS]
    for logger in loggers:
        logger.handlers = list(handlers)
        logger.propagate = False
    try:
        yield
    finally:
        for logger in loggers:
            logger.propagate = True
            logger.handlers = []
