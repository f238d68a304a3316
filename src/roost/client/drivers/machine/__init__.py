"""The parts that drivers of a machine share: its values, and the tree that they become."""
