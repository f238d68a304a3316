"""What Roost offers beyond the Placement API: everything under `/roost/`."""
