"""The commands that ask where a request fits, and why it does not."""
