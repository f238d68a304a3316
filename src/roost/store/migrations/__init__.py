"""How the tables are made: two histories of revisions, and their runner.

`placement.py` is the reference's history with the reference's revision ids. So Roost can continue
from a revision of the reference, and the reference from one of Roost. `roost.py` is the history of
Roost's own tables.
"""
