"""`roost ui`: the pages on this machine, in front of any placement server."""
