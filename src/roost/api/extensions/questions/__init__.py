"""The routes under `/roost/` that a forest answers."""
