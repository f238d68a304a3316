"""What a caller may do: the rules, the decisions, the listing and the review."""
