"""Versions of named Objects: each is a table that never changes, and the one with the greatest number counts."""
