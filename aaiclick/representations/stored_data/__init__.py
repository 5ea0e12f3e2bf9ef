"""What is shown of Objects and where they come from."""
