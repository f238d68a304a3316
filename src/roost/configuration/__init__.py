"""`placement.conf`, the environment and the defaults, read once and handed on as values."""
