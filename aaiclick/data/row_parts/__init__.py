"""Rows that are worked on in parts."""
