"""Column types and helpers for table definitions, and the tables that do not belong to jobs."""
