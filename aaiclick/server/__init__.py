"""The server: the front door's functions over HTTP. It decides nothing, and shows what is there.

Only `aaiclick server start` imports this: it needs the extra `server`. `addresses` alone does not.
"""
