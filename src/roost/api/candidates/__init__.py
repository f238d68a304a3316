"""`GET /allocation_candidates`: from a query string to a search, from its result to bytes."""
