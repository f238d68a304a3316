"""Declared trees: what an owner declares, what it owns, and what a declaration changes. Pure."""
