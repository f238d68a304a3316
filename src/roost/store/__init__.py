"""The durable truth: tables, migrations, transactions, the change journal. It knows no HTTP."""
