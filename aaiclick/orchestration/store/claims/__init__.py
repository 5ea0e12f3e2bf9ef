"""Claims of tasks: how they are made, reported, given back and recovered."""
