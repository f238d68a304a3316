"""The use cases, one function each: the store plus the rules.

Each takes a connection inside a transaction as its first argument, so that they can be put
together; `Database.read` and `Database.write` run them. Domain errors are raised here only.
"""
