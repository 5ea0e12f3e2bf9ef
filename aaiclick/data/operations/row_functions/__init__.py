"""Functions of each row's own values, by subject."""
