"""What was kept long enough goes."""
