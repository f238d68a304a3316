"""The commands on what a server has: providers, consumers, names."""
