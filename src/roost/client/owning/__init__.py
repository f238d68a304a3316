"""Several writers on one tree: each declares its own part and leaves alone what is the others'."""
