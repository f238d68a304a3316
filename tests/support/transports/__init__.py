"""Transports that watch or disturb the requests of a client."""
