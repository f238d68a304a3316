"""The script that Apache's mod_wsgi loads; deploy/wsgi/apache.conf names it."""

import os

# Apache's SetEnv does not reach the environment of the process.
os.environ.setdefault("OS_PLACEMENT_CONFIG_DIR", "/etc/placement")

from roost.wsgi import application  # noqa: E402, F401
