"""Questions about what is stored."""
