"""Streams of events: answers that stay open, fed by one reader of the database for all of them."""
