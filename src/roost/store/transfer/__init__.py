"""Whole tables, read and written row by row with their ids, for export and import.

`layout.py` has the tables in the order in which rows can be written. `reading.py` reads them in
pages. `writing.py` inserts batches. `progress_mark.py` records how far an import has come.
"""
