"""A seeded simulator: the real worker, heartbeat, control and store code through crashes, lost replies and pauses.

`python -m tests.simulation SEED` prints the whole trace of one seed.
"""
