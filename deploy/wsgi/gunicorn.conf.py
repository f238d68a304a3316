"""Roost behind gunicorn: gunicorn --config /etc/placement/gunicorn.conf.py.

pip install 'roost[server]' gunicorn, in one environment. docs/wsgi.md says why each line is here.
"""

wsgi_app = "roost.wsgi:application"
bind = "127.0.0.1:8778"
# The service answers below /placement, and knows it: links and Location have the prefix.
raw_env = ["SCRIPT_NAME=/placement"]

worker_class = "gthread"
workers = 4
threads = 8
# Each worker loads the application itself. So SIGHUP gives new workers the new configuration.
preload_app = False
# A worker that reads a large cloud at its start is not dead.
timeout = 120
# At a reload, an earlier worker has this time for the requests that it began.
graceful_timeout = 35
keepalive = 75
# Long queries for candidates are in the address.
limit_request_line = 8190
# Roost writes a line for each request itself.
accesslog = None
