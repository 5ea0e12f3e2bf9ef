"""What comes from outside: tokens, the audit, entrypoints that are not trusted."""
