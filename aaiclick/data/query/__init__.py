"""Queries as plain data: the expressions and relations that columns and Objects build before anything runs."""
