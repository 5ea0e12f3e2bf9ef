"""The ClickHouse tables of Objects: their names, creation, contents and lifetimes."""
