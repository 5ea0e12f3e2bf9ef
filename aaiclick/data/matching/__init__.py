"""Which rows of two queries are the same, and which is the first, the second … of a query that is sorted."""
