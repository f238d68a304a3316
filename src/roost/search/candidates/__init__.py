"""From a query and a forest to candidates: plan, choose blocks, scan, solve, walk."""
