"""The log lines and traces of a process, and the masking of secret values in both."""
