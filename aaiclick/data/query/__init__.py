"""What people write and what it means: expressions and relations, plain data."""
