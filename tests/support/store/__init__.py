"""Rows and schemas in the databases of tests."""
