"""Drivers: each describes a host, by `update_provider_tree` or by `declare`."""
