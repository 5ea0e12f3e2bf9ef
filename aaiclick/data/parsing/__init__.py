"""Texts into values, exactly or not at all."""
