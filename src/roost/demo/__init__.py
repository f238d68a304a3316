"""A demo cloud, so that there is something to ask."""
