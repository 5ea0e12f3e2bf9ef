"""Encoding of arguments and results as JSON: a value is restored exactly, or refused when it is encoded."""
