"""Requests as people type them, and the query strings that servers take."""
