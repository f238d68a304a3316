"""The change journal: a write records which provider changed and how, and readers follow it.

Each process keeps a forest of all providers in memory. It reads what is new in the journal and
changes its forest accordingly. `writing.py` inserts rows in the transaction of the change itself.
`position.py` says what a reader does. `reading.py` chooses the reader of a database.
`following.py` is the connection of a reader. `pruning.py` deletes old rows, as far as `old_rows.py`
allows for a database.

A database gives a row its id at the INSERT, and shows the row after the COMMIT. So a row may become
visible below rows that a reader has already seen. A reader that asks only for higher ids loses a
third of all changes while several writers work. Each database has a module that avoids the loss:

- `sqlite.py`: SQLite has one writer at a time, so ids become visible in order.
- `postgresql.py`: the server tells which transactions run. The reader asks for their rows later.
- `mysql.py` (MySQL and MariaDB): the reader remembers the ids that are missing below the highest
  id it has seen (`gaps.py`). It looks for them at every read until they can no longer appear.

`by_id.py` is what the readers of SQLite and of MySQL have in common.
"""
