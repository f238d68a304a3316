"""From a driver to the server: read a tree, have it brought up to date, write the difference."""
