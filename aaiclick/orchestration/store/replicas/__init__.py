"""What a replica copies, how it is read at the coordinator, and how it is written into the replica's own file."""
