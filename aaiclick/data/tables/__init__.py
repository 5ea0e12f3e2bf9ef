"""The tables of Objects: how they are made, kept and called."""
