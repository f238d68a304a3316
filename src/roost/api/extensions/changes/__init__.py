"""`/roost/changes`: pages of changes, clients that wait for them, and streams."""
