"""The coordinator of a process without a database: it asks a server, under /api/v1/node."""
