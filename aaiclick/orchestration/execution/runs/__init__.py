"""One run: from a claim to its report."""
