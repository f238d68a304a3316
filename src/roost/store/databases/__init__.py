"""A package for each database: all that differs between databases.

Its face is `DIALECT`, a subclass of `Dialect`. `store/dialect.py` chooses the package by the scheme
of a URL, and nothing else imports it. To add a database, write a package and add its scheme there.
"""
