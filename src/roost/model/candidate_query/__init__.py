"""The query for allocation candidates, its edits, and what a client may ask for instead."""
