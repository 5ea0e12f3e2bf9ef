"""Retention: which rows and tables are old enough to be removed, and their removal."""
