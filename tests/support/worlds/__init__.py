"""Worlds of providers in a short notation, and the expected answers."""
