"""What `roost db check` looks at: rows, values, tables, and the state before a move."""
