"""Clients of ClickHouse: one contract, for the embedded engine and for servers."""
