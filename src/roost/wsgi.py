"""`roost.wsgi:application`, for `roost serve`, uwsgi, gunicorn and mod_wsgi.

Reads `placement.conf` as the environment says; a configuration or database that cannot be used
fails the import, with the reason.
"""

from __future__ import annotations

from roost.bootstrap import create_application
from roost.configuration.logs import set_up_logging
from roost.configuration.settings import load_settings

_settings = load_settings()
set_up_logging(_settings)
application = create_application(_settings)
