"""From the problem of one tree to its solutions: for every slot one provider."""
