"""The revisions of the tables named `roost_*`."""
