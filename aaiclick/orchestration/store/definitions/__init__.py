"""How tables are defined, and the tables beside those of jobs."""
