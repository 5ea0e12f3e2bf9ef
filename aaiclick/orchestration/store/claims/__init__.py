"""Claims: begun, reported, recovered."""
