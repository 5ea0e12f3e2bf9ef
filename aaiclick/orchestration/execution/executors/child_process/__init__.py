"""What runs in a child process: one body after another, in its main thread."""
