"""The snapshot: all trees as columns, and private copies of it with changes."""
