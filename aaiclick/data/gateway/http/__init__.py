"""HTTP/1.1, the compression of HTTP and that of ClickHouse."""
