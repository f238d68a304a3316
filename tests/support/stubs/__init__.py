"""Stand-ins that answer as a test tells them."""
