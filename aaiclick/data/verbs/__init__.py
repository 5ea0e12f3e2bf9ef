"""The verbs of frames."""
