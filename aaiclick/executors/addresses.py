"""Which addresses the executor `rest` may call.

In a job that came from outside, where the address may have come with the arguments, only public ones. In all other
jobs, all but those that serve the machine's own credentials (link-local) and those that are no host's. What
AAICLICK_REST_ALLOW names may always be called. It is the address that is judged, not the name, and that address is
then called: a name that is looked up twice could mean two places.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Sequence
from typing import NamedTuple, NoReturn
from urllib.parse import SplitResult, quote, urlsplit

from aaiclick.config import settings
from aaiclick.errors import InputError, NotAllowed
from aaiclick.orchestration.rules.naming.untrusted_entrypoints import are_from_outside
from aaiclick.orchestration.rules.validation import shorten

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
PORTS = {"http": 80, "https": 443}
_AS_THEY_ARE = "/?#[]@!$&'()*+,;=:%-._~"


class Place(NamedTuple):
    """An address that may be called: its parts, and where its host was found."""

    url: SplitResult
    host: str
    port: int
    ips: Sequence[str]

    @property
    def target(self) -> str:
        """What a request asks for."""
        target = (self.url.path or "/") + (f"?{self.url.query}" if self.url.query else "")
        return quote(target, safe=_AS_THEY_ARE)

    @property
    def host_header(self) -> str:
        name = f"[{self.host}]" if ":" in self.host else self.host
        return name if self.port == PORTS[self.url.scheme] else f"{name}:{self.port}"


def read_url(url: object) -> SplitResult:
    """Return the parts of an address; raise InputError for one that cannot be called."""
    if not isinstance(url, str) or not url.isprintable() or " " in url:
        _refuse(url, "it must be an address without blanks")
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        _refuse(url, "it must be an address such as https://example.org/path")
    if parts.scheme not in PORTS or not parts.hostname:
        _refuse(url, "it must be an address that begins with http:// or https://")
    if parts.username is not None or parts.password is not None:
        _refuse("***", "no user and no password stand in it: they would be shown. Give them as a header")
    return parts


async def find_place(url: str) -> Place:
    """Look up the host of an address. Raise NotAllowed if it may not be called, OSError if it is not found."""
    parts = read_url(url)
    host = (parts.hostname or "").rstrip(".")
    port = parts.port or PORTS[parts.scheme]
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    ips = list(dict.fromkeys(str(each[4][0]) for each in found))
    allowed = settings().rest_allow
    if host.lower() not in allowed:
        for ip in ips:
            _check(host, ipaddress.ip_address(ip), allowed)
    return Place(parts, host, port, ips)


def _check(host: str, ip: Address, allowed: Sequence[str]) -> None:
    inner = _inner(ip)
    if any(each in _network(name) for name in allowed for each in (ip, inner) if _is_network(name)):
        return
    if are_from_outside():
        if not inner.is_global or inner.is_multicast:
            _forbid(host, inner, "a job that came from outside may call public addresses only")
    elif inner.is_link_local or inner.is_unspecified or inner.is_multicast:
        _forbid(host, inner, "it is no address of a service")


def _inner(ip: Address) -> Address:
    """Return the IPv4 address that an IPv6 address stands for, if it does."""
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.ipv4_mapped is not None:
            return ip.ipv4_mapped
        if ip.sixtofour is not None:
            return ip.sixtofour
        if ip in _NAT64:
            return ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
    return ip


_NAT64 = ipaddress.ip_network("64:ff9b::/96")


def _is_network(name: str) -> bool:
    return all(letter in "0123456789abcdef.:/" for letter in name) and any(letter in ".:" for letter in name)


def _network(name: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    try:
        return ipaddress.ip_network(name, strict=False)
    except ValueError:  # a host name that looks like an address
        return ipaddress.ip_network("255.255.255.255/32")


def _forbid(host: str, ip: Address, cause: str) -> NoReturn:
    shown = host if host == str(ip) else f"{host} ({ip})"
    raise NotAllowed(what=f"Calling {shorten(shown)}", cause=cause, hint="Name it in AAICLICK_REST_ALLOW.")


def _refuse(url: object, rule: str) -> NoReturn:
    raise InputError(field="url", value=shorten(url), rule=rule, hint="")
