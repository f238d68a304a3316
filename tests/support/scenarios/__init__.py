"""Random clouds and requests, and the oracle that knows the right answers."""
