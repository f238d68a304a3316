"""Use cases on the tables: each shows or changes what the database holds of one noun."""
