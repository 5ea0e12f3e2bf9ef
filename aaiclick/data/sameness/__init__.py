"""SQL that decides when values are equal: NaN, zeros, and values of different types."""
