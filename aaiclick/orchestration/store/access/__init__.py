"""Tokens, and who changed what."""
