"""HTTP/1.1 and ClickHouse's compression."""
