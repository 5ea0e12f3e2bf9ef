"""Fetches an address that may lead elsewhere, in this process: each hop is judged before it is connected to.

Whoever answers decides where a redirect leads. So it may lead within the host that was named, or to public addresses,
but not to others: these may be what only this machine reaches. The address that was judged is the one connected to: a
name is not looked up again. What an answer holds is read once.
"""

from __future__ import annotations

import base64
import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import NamedTuple
from urllib.parse import quote, unquote, urljoin, urlsplit

from aaiclick.errors import InputError
from aaiclick.urls import mask_url, shown

FETCHED_BYTES_MAX = 256 * 1024 * 1024
FETCHED_S_MAX = 300.0
ANSWER_S_MAX = 30.0
PIECE_BYTES = 1 << 20
LEADING = (301, 302, 303, 307, 308)

_PORTS = {"http": 80, "https": 443}
_SAFE = "!#$%&'()*+,/:;=?@[]~"
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


class Place(NamedTuple):
    """Where a request goes."""

    scheme: str
    host: str
    port: int
    target: str
    """The path and the query."""
    login: str
    """`user:password` of the address, or an empty text."""

    @property
    def origin(self) -> tuple[str, str, int]:
        return self.scheme, self.host, self.port

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return shown(mask_url(f"{self.scheme}://{host}:{self.port}{self.target}"))


def fetch(url: str, redirects: int) -> bytes:
    """Return what is at an address, after up to `redirects` redirects; raise InputError if one of them is refused.

    This blocks.
    """
    first = place = _place_of(url, url)
    pinned, seen = {first.host: _addresses(first, url)}, {first}
    until = time.monotonic() + FETCHED_S_MAX
    for left in range(redirects, -1, -1):
        try:
            with _answer(place, pinned[place.host], first, until) as answer:
                if answer.status not in LEADING:
                    return _content(answer, place, url, until)
                location = answer.headers.get("Location", "")
        except (OSError, HTTPException) as error:
            raise _refused(url, f"{place} cannot be fetched: {shown(str(error) or type(error).__name__)}") from error
        place = _next(place, location, url)
        if place in seen:
            raise _refused(url, f"it leads in a circle: to {place} again")
        if not left:
            break
        seen.add(place)
        if place.host not in pinned:
            pinned[place.host] = _addresses(place, url)
        _judge(place, first, pinned[place.host], url)
    raise _refused(url, f"it leads elsewhere again, and {redirects} redirects are followed")


# ---------------------------------------------------------------- where it leads


def _place_of(address: str, url: str) -> Place:
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError as error:
        raise _refused(url, f"it leads to what is no address: {shown(str(error))}") from None
    host = (parts.hostname or "").rstrip(".")
    if parts.scheme not in _PORTS or not host:
        raise _refused(url, f"it leads to {shown(mask_url(address))}, which is not of http:// or https://")
    login = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}" if parts.username else ""
    target = quote(f"{parts.path or '/'}{'?' + parts.query if parts.query else ''}", safe=_SAFE)
    return Place(parts.scheme, host, _PORTS[parts.scheme] if port is None else port, target, login)


def _next(place: Place, location: str, url: str) -> Place:
    if not location or "\\" in location or not location.isprintable() or " " in location:
        raise _refused(url, f"it leads to what is no address: {shown(repr(location))}")
    host = f"[{place.host}]" if ":" in place.host else place.host
    try:
        address = urljoin(f"{place.scheme}://{host}:{place.port}{place.target}", location)
    except ValueError as error:
        raise _refused(url, f"it leads to what is no address: {shown(str(error))}") from None
    found = _place_of(address, url)
    if found.login:
        raise _refused(url, f"it leads to an address with a user of its own, {found}")
    if (place.scheme, found.scheme) == ("https", "http"):
        raise _refused(url, f"it leads from https:// down to {found}")
    return found


def _judge(place: Place, first: Place, addresses: list[str], url: str) -> None:
    """Raise InputError if the next hop is neither at a public address nor at the host and port that were named.

    The usual ports of http and https count as one.
    """
    usual = all(each.port == _PORTS[each.scheme] for each in (first, place))
    if place.host == first.host and (place.port == first.port or usual):
        return
    for address in addresses:
        if not is_public(address):
            told = f"it leads to {place}, whose address {address} is not public"
            raise _refused(url, told, "Give that address itself, if you mean it.")


def _addresses(place: Place, url: str) -> list[str]:
    try:
        found = socket.getaddrinfo(place.host, place.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise _refused(url, f"the host of {place} is not known: {shown(str(error))}") from error
    return list(dict.fromkeys(str(each[4][0]) for each in found))


def is_public(address: str) -> bool:
    """Return whether an IP address is one of the public network, also if it stands for another one inside of it."""
    found = ipaddress.ip_address(address)
    if isinstance(found, ipaddress.IPv6Address):
        inner = found.ipv4_mapped or found.sixtofour or (found.teredo[1] if found.teredo else None)
        if found in _NAT64:
            inner = ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(str(inner))
    return found.is_global and not found.is_multicast and not found.is_reserved


# ---------------------------------------------------------------- one hop


class _Connection(HTTPConnection):
    """A connection to one of the addresses that were judged, whatever the host's name would mean by now."""

    def __init__(self, place: Place, addresses: list[str], seconds: float) -> None:
        super().__init__(place.host, place.port, timeout=min(seconds, ANSWER_S_MAX))
        self.default_port = _PORTS[place.scheme]
        self._addresses, self._is_safe = addresses, place.scheme == "https"

    def connect(self) -> None:
        for number, address in enumerate(self._addresses):
            try:
                self.sock = socket.create_connection((address, self.port), self.timeout)
                break
            except OSError:
                if number == len(self._addresses) - 1:
                    raise
        if self._is_safe:
            self.sock = ssl.create_default_context().wrap_socket(self.sock, server_hostname=self.host)


@contextmanager
def _answer(place: Place, addresses: list[str], first: Place, until: float) -> Iterator[HTTPResponse]:
    """Ask, and yield the answer. At the end of the time that is left, the connection is cut."""
    seconds = max(until - time.monotonic(), 0.001)
    connection = _Connection(place, addresses, seconds)
    cutting = threading.Timer(seconds, _cut, [connection])
    cutting.daemon = True
    cutting.start()
    try:
        connection.request("GET", place.target, headers=_headers(place, first))
        yield connection.getresponse()
    finally:
        cutting.cancel()
        connection.close()


def _cut(connection: HTTPConnection) -> None:
    sock = connection.sock
    if sock is not None:
        with suppress(OSError):  # it has ended already
            sock.shutdown(socket.SHUT_RDWR)


def _headers(place: Place, first: Place) -> Mapping[str, str]:
    """Return the headers of a request; user and password are shown only where they were given for."""
    headers = {"Accept-Encoding": "identity", "User-Agent": "aaiclick"}
    if first.login and place.origin == first.origin:
        headers["Authorization"] = f"Basic {base64.b64encode(first.login.encode()).decode()}"
    return headers


def _content(answer: HTTPResponse, place: Place, url: str, until: float) -> bytes:
    if answer.status != 200:
        raise _refused(url, f"{place} answers {answer.status} {shown(answer.reason)}")
    if (packing := answer.headers.get("Content-Encoding", "identity").lower()) != "identity":
        raise _refused(url, f"{place} answers with an encoding that was not asked for: {shown(packing)}")
    content = bytearray()
    while piece := answer.read1(PIECE_BYTES):
        content += piece
        if len(content) > FETCHED_BYTES_MAX:
            raise too_large(url)
    if answer.length or time.monotonic() >= until:
        raise _refused(url, f"{place} broke off after {len(content)} bytes")
    return bytes(content)


def too_large(url: str) -> InputError:
    """Return the error for an address with more than is kept in memory."""
    return _refused(url, f"behind a redirect, at most {FETCHED_BYTES_MAX} bytes are read, unpacked too")


def _refused(url: str, rule: str, hint: str = "Give the address where it ends.") -> InputError:
    return InputError(field="url", value=shown(mask_url(url)), rule=rule, hint=hint)
