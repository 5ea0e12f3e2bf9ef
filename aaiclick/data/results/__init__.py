"""A query is run, and what it gives is read: Python values, Arrow, files, text."""
