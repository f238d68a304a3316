"""Moving a cloud between servers and databases."""
