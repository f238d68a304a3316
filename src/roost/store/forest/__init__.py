"""What a search forest is made of, read from the tables: whole trees, column by column."""
