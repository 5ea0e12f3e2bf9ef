"""The nodes of the fleet: how they are registered, and what their operators do with them."""
