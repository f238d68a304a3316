"""The typed library for schedulers: `Roost`, its values, and the queries that it takes."""
