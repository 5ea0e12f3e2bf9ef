"""Turning calls into a submission: entrypoints of functions, checks of arguments, copies of Objects."""
