"""From calls to what is submitted: entrypoints, arguments, checks."""
