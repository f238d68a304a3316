"""How the tables come to be: two histories of revisions, and what runs them.

`placement/` is the reference's history under the reference's own revision ids, so that either
service can continue where the other stopped. `roost/` is the history of our own tables.
"""
