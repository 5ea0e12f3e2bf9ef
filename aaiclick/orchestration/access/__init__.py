"""Access control for requests from outside: tokens, the audit log, checks of untrusted entrypoints."""
