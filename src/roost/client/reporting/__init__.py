"""Reporting: read a tree, have a driver update it, write the difference."""
