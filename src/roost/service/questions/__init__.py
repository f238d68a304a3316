"""Use cases that a forest answers: candidates, explanations, what-ifs, lists with filters."""
