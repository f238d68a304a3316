"""Immutable values and the words of the domain. No input or output of any kind."""
