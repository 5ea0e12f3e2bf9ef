"""Functions that compute a value from the values of the same row, by subject."""
