"""Triggers that let the writes of other programs reach the journal of Roost.

`watching.py` says which changes of which tables matter. `postgresql.py`, `mysql.py` and `sqlite.py`
have the SQL. `installation.py` installs and removes the triggers, and tells what is installed.

A trigger writes rows without usages, so a reader reads the provider again. Connections of Roost
write their own rows to the journal. Triggers leave these connections out where the database can
tell connections apart: PostgreSQL by the name of the application, MySQL by a variable.
"""
