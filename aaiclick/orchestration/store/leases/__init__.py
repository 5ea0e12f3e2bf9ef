"""What is held until an end, by the database's time: the leader's term, ids of machines."""
