"""A search forest in memory that is never older than the question asked of it."""
