"""The handlers of the routes: from a request to a use case, and from its result to an answer."""
