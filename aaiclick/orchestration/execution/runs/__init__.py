"""The steps of one run, from a claim to its report."""
