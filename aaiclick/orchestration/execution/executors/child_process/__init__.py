"""The code of child processes, which run one body after another in their main thread."""
