"""A package for each database: all that differs between databases.

Each has a subclass of `Dialect` as its face, the module's `DIALECT`. `journal.py` reads and prunes
the change journal, `triggers.py` has the SQL of triggers. `store/dialect.py` chooses the package by
the scheme of a URL, and nothing else imports it.
"""
