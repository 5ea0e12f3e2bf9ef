"""When values count as the same: NaN, zeros, and values of different types."""
