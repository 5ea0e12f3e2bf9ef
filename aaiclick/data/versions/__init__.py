"""Versions of named Objects. Each is a table that never changes; the one with the highest number is current."""
