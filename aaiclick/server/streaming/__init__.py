"""Events that are followed: one reader for all streams."""
