"""How ClickHouse says it: from relations and expressions to one SELECT."""
