"""The shape of graphs, and what waits in them."""
