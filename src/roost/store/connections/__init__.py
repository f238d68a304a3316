"""Connections to a database: pools, sessions, errors, URLs, and what ends a silent one."""
