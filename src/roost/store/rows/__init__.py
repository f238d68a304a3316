"""The rows of each noun: read, locked and written."""
