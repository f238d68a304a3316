"""Keeps a search forest in memory as fresh as the tables: no answer is older than its request."""
