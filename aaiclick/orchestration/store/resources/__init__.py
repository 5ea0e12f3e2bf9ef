"""Resources: the capacities that there are, and what runs hold of them."""
