"""Where would this fit? Pure: a snapshot of the forest and a query in, candidates out."""
