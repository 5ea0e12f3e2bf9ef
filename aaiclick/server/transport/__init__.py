"""Sockets, connections and the framing of requests: limits before anything is done."""
