"""Servers and proxies that run beside the tests."""
