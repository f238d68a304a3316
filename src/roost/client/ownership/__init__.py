"""Ownership: several owners declare parts of one tree, and each changes only what it put there."""
