"""Compiles relations and expressions into one ClickHouse SELECT."""
