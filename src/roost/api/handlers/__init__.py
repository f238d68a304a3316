"""The routes' handlers: from a request to a use case, from its result to a representation."""
