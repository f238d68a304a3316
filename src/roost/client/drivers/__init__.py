"""Drivers: what finds out how a host looks. Each has `update_provider_tree`."""
