"""SQL of arithmetic whose results are exact: what would overflow or lose digits raises an error."""
