"""Immutable values and rules of the domain, without any input or output."""
