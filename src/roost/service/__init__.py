"""The use cases, one function each: what the store does, and the rules for it.

The first argument of a use case is a connection inside a transaction, so one use case can call
another. `Database.read` and `Database.write` run use cases. Only this package raises domain errors.
"""
