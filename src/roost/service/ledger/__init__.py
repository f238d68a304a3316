"""The use cases of the routes under `/roost/` that change what the tables hold."""
