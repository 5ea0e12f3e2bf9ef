"""What is shown of tokens and the audit log."""
