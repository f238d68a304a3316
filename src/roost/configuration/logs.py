"""Logging as `placement.conf` describes it."""

from __future__ import annotations

import logging

from oslo_log import log

from roost.configuration.settings import Settings, options_without_effect


def set_up_logging(settings: Settings) -> None:
    """Send log lines where the configuration says; to standard error if it says nothing."""
    conf = settings.oslo
    if not (conf.log_file or conf.log_dir or conf.use_syslog or conf.use_journal):
        conf.set_default("use_stderr", True)
    log.setup(conf, "roost")
    for name in options_without_effect(settings):
        logging.getLogger(__name__).info("%s is set, but has no effect in Roost", name)
