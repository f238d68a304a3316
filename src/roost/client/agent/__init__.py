"""The agent: reports a host, and goes on reporting whenever it changes."""
