"""Moves of the states, and what follows from them."""
