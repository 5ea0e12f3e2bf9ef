"""Addresses of servers, and TLS on the way to them."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from urllib.parse import urlsplit

from aaiclick.errors import ConfigError

API = "/api/v1"


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
    def of(cls, url: str) -> Address:
        """Read `http://host:port` or `https://host/path`, with or without /api/v1; raise ConfigError."""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            parts, port = urlsplit(""), None
        has_more = parts.query or parts.fragment or parts.username is not None or not url.isprintable()
        if parts.scheme not in ("http", "https") or not parts.hostname or has_more or not url.isascii():
            rule, hint = "it must be the address of a server", "Such as https://aaiclick.example.com:8765."
            raise ConfigError(
                setting="AAICLICK_API_URL", value=repr(url.rpartition("@")[2][:120]), rule=rule, hint=hint
            )
        secure = parts.scheme == "https"
        path = parts.path.rstrip("/").removesuffix(API)
        return cls(url, parts.hostname, port or (443 if secure else 80), secure, path)

    @property
    def named(self) -> str:
        """The Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.secure else 80) else f"{host}:{self.port}"


def secured(address: Address, verify: bool | str | ssl.SSLContext) -> ssl.SSLContext | None:
    """Return how TLS is checked: by the machine's authorities, those of a file, not at all, or as a context says."""
    if not address.secure:
        return None
    if isinstance(verify, ssl.SSLContext):
        return verify
    try:
        made = ssl.create_default_context(cafile=verify if isinstance(verify, str) else None)
    except OSError as error:
        rule = f"the certificates cannot be read: {error.strerror or error}"
        raise ConfigError(setting="verify", value=repr(verify), rule=rule, hint="Name a file in PEM format.") from None
    if verify is False:
        made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
    return made
