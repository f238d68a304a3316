"""Reads what a server has: providers, trees, consumers, names."""
