"""The durable truth: tables, migrations, transactions, the change journal. Knows no HTTP."""
