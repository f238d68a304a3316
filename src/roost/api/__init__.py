"""The WSGI application: microversions, routes, schemas, representations, errors, policy."""
