"""Streams of Redis that other programs write: their entries become jobs and orders, each once."""
