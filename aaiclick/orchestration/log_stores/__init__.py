"""Where the logs of runs are kept: in a directory of one machine, in a shared directory, or in an object store."""
