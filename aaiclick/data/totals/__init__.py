"""Methods that look at many rows: totals, windows, sequences of events."""
