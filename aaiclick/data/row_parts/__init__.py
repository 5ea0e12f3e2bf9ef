"""Splits the rows of an Object into parts for parallel tasks, and joins the tables that these make."""
