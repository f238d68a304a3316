"""What is common to drivers that describe a machine: its values, and the tree made of them."""
