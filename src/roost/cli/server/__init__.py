"""The commands of the server: its database, tokens and policy."""
