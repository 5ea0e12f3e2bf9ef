"""The control loop and its reconcilers: the leader repairs the state, fires schedules, and removes what is too old."""
