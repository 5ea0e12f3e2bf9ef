"""Leases that expire by the database's time: the leader's term, machine ids; and what the leader records."""
