"""The routes under `/roost/` that show and change what the tables hold."""
