"""References to the tables of Objects: who needs them, and when they go."""
