"""Results: what runs return, and how it is read back."""
