"""Sockets, connections and HTTP framing: the limits that apply to a request before it is authenticated."""
