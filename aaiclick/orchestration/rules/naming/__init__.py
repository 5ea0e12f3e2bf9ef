"""Names that are given to logs, events, hints and scripts; what untrusted ones reach."""
