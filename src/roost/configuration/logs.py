"""Logging as `placement.conf` describes it."""

from __future__ import annotations

import logging
import os

from oslo_log import log

from roost.configuration.log_lines import shorten_lines
from roost.configuration.regular_files import check_not_special
from roost.configuration.settings import Settings, options_without_effect
from roost.configuration.unknown_names import unknown_names
from roost.model.errors import ConfigurationError

_LOG = logging.getLogger(__name__)


def set_up_logging(settings: Settings) -> None:
    """Send log lines where the configuration says; to standard error if it says nothing."""
    conf = settings.oslo
    if not (conf.log_file or conf.log_dir or conf.use_syslog or conf.use_journal):
        conf.set_default("use_stderr", True)
    conf.set_default("default_log_levels", [*log.get_default_log_levels(), "alembic=WARN"])
    try:
        if conf.log_config_append:
            check_not_special(conf.log_config_append)
        log.setup(conf, "roost")
    except (OSError, ValueError, log.LogConfigError) as error:
        raise ConfigurationError(
            f"The log cannot be written: {error}. Check log_file, log_dir and log_config_append in "
            "[DEFAULT]."
        ) from error
    for handler in logging.getLogger().handlers:
        shorten_lines(handler)
    for name in options_without_effect(settings):
        _LOG.info("%s is set, but has no effect in Roost", name)


def log_unknown_names(settings: Settings) -> None:
    """Log each group and option that has no effect because of a misspelling."""
    for sentence in unknown_names(settings.config_files, os.environ):
        _LOG.warning("%s", sentence)
