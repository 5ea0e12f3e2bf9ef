"""Ways to ClickHouse: one contract, the embedded engine and a server behind it."""
