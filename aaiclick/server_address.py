"""The address of a server of ours, as settings and callers write it."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from aaiclick.errors import ConfigError

API = "/api/v1"
"""What the paths of a server begin with."""


@dataclass(slots=True, frozen=True)
class Address:
    """Where a server is."""

    url: str
    host: str
    port: int
    secure: bool
    path: str
    """What stands before the paths of the server, as behind a proxy."""

    @classmethod
    def of(cls, url: str, setting: str = "AAICLICK_API_URL") -> Address:
        """Read `http://host:port` or `https://host/path`, with or without /api/v1; raise ConfigError.

        `setting` is where it was written.
        """
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            parts, port = urlsplit(""), None
        has_more = parts.query or parts.fragment or parts.username is not None or not url.isprintable()
        if parts.scheme not in ("http", "https") or not parts.hostname or has_more or not url.isascii():
            rule, hint = "it must be the address of a server", "Such as https://aaiclick.example.com:8765."
            raise ConfigError(setting=setting, value=repr(url.rpartition("@")[2][:120]), rule=rule, hint=hint)
        secure = parts.scheme == "https"
        path = parts.path.rstrip("/").removesuffix(API)
        return cls(url, parts.hostname, port or (443 if secure else 80), secure, path)

    @property
    def named(self) -> str:
        """The Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.secure else 80) else f"{host}:{self.port}"
