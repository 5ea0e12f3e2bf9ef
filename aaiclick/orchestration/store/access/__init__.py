"""Tokens of the server, and the audit log."""
