"""`roost.wsgi:application`, for `roost serve`, uwsgi, gunicorn and mod_wsgi.

The environment names the directory or the files of `placement.conf`. If the configuration or the
database cannot be used, the import fails with the reason.
"""

from __future__ import annotations

import os

from roost.bootstrap import create_application
from roost.configuration.logs import log_unknown_names, set_up_logging
from roost.configuration.settings import CONFIG_FILES_VARIABLE, load_settings

settings = load_settings()
set_up_logging(settings)
# `roost serve` sets the variable, and has logged the unknown names once for all its workers.
if CONFIG_FILES_VARIABLE not in os.environ:
    log_unknown_names(settings)
application = create_application(settings)
