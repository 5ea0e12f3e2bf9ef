"""Refuses request heads whose end or length is ambiguous (request smuggling).

HTTP implementations read such heads differently: behind a proxy, the rest of one client's request could become the
beginning of another client's.
"""

from __future__ import annotations

import re

_LINE = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+:[^\x00\r\n]*")
_FIRST = re.compile(rb"[A-Z]{1,20} [\x21-\x7e]+ HTTP/1\.[01]")
_LENGTH = re.compile(rb"[0-9]{1,18}")
_BARE_LF = re.compile(rb"(?<!\r)\n")
_BARE = re.compile(rb"\r(?!\n)|(?<!\r)\n")


def wrong_in(head: bytes) -> str:
    """Return what is wrong with a request's head, given without its empty line; an empty text if nothing is."""
    if _BARE.search(head):
        return "Lines end with CR LF, and have neither alone."
    first, *lines = head.split(b"\r\n")
    if not _FIRST.fullmatch(first):
        return "The first line is not that of a request in HTTP/1.1."
    if not all(map(_LINE.fullmatch, lines)):
        return "A header is not of the form name: value on one line."
    return _wrong_length(first, lines)


def wrong_so_far(head: bytearray, begin: int) -> str:
    """Return what is wrong with an incomplete head after this place, or an empty text.

    Only bare line feeds are looked for: a client that sends them never sends the CR LF that ends the head.
    """
    return "Lines end with CR LF, and have neither alone." if _BARE_LF.search(head, begin) else ""


def _wrong_length(first: bytes, lines: list[bytes]) -> str:
    lengths, codings = _named(b"content-length", lines), _named(b"transfer-encoding", lines)
    if lengths and codings:
        return "Content-Length and Transfer-Encoding are both given."
    if len(lengths) > 1 or len(codings) > 1:
        return "The length of the body is given twice."
    if lengths and not _LENGTH.fullmatch(lengths[0]):
        return "Content-Length is not a number of bytes."
    if codings and (codings[0].lower() != b"chunked" or first.endswith(b"1.0")):
        return "The only Transfer-Encoding that is understood is chunked, in HTTP/1.1."
    return ""


def _named(name: bytes, lines: list[bytes]) -> list[bytes]:
    split = (line.split(b":", 1) for line in lines if line[: len(name)].lower() == name)
    return [value.strip(b" \t") for found, value in split if found.lower() == name]
