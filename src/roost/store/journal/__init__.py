"""The change journal: a write records which provider changed and how, and readers follow it.

Each process keeps a forest of all providers in memory. It reads what is new in the journal and
changes its forest accordingly. `writing.py` inserts rows in the transaction of the change itself.
`position.py` says what a reader does. `following.py` is the connection of a reader. `pruning.py`
deletes old rows, as far as a database allows.

A database gives a row its id at the INSERT, and shows the row after the COMMIT. So a row may become
visible below rows that a reader has already seen. A reader that asks only for higher ids loses a
third of all changes while several writers work. Each database has a `Position` that avoids the
loss. `IdPosition` is what those have in common that read on by the ids of rows.
"""
