"""Masking of secret values: each value that this process has resolved is replaced by stars in all it writes or reports.

Values are only added, for as long as the process lives: a thread that outlives its run still has the value that the run
was given.
"""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple
from urllib.parse import quote, quote_plus, unquote, urlsplit

STARS = "***"

PASSWORD_LENGTH_MIN = 4
"""A shorter password is not masked here. The functions that print URLs mask it."""


CUT_LENGTH_MIN = 4
"""The minimum length of a fragment of a value to be masked, where dots mark that the text was cut."""

_DOTS = re.compile(r"…|\.{3}")
_SQL_ESCAPES = str.maketrans(
    {"\\": r"\\", "'": r"\'", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\0": r"\0", "\b": r"\b", "\f": r"\f"}
)


class _Known(NamedTuple):
    """All known values and their forms, as text and as bytes. Longer forms come first, so that they match first."""

    forms: dict[str, str]
    text: re.Pattern[str]
    data: re.Pattern[bytes]
    begins: tuple[bytes, ...]
    values: frozenset[str]


_known: _Known | None = None
_tell: Callable[[list[str]], None] | None = None


def remember(values: Iterable[str]) -> None:
    """Mask these values from now on, in plain and as Python, JSON, SQL, HTML, URLs, hex and base64 write them."""
    known = _known.values if _known else frozenset()
    new = sorted({value for value in values if value and value not in known})
    if not new:
        return
    if _tell is not None:
        _tell(new)  # before anything can be printed: the process that keeps the output masks it
    _add({form: STARS for value in new for form in forms_of(value)}, new)


def remember_passwords(urls: Iterable[str]) -> None:
    """Mask the passwords of these URLs, where they occur as a password in a URL (`:password@`)."""
    forms: dict[str, str] = {}
    for url in urls:
        try:
            written = urlsplit(url).password or ""
        except ValueError:  # not a URL that can be parsed
            continue
        for password in {written, unquote(written)}:
            if len(password) >= PASSWORD_LENGTH_MIN:
                forms |= {f":{form}@": f":{STARS}@" for form in forms_of(password)}
    if forms:
        _add(forms, ())


def tell_new_ones(tell: Callable[[list[str]], None] | None) -> None:
    """Set the function that is called with new values before they are masked here; None for no function.

    A child process uses it: its worker keeps what the child prints, and must know the values first.
    """
    global _tell
    _tell = tell


def forget_all() -> None:
    """Forget all values. Tests use it."""
    global _known
    _known = None


def forms_of(value: str) -> set[str]:
    """Return the ways in which code that does not know the value is secret may write it: escaped, quoted, encoded."""
    literals = (repr(value), ascii(value), json.dumps(value), json.dumps(value, ensure_ascii=False))
    escaped = {literal[1:-1] for literal in literals} | {repr(value.encode())[2:-1]} | set(_in_sql(value))
    escaped |= {once.replace("/", r"\/") for once in escaped}  # as ClickHouse and PHP write JSON
    twice = {json.dumps(once)[1:-1] for once in escaped}  # JSON in a line of JSON
    quoted = {quote(value), quote(value, safe=""), quote_plus(value)}
    quoted |= {_ESCAPED_BYTE.sub(lambda found: found[0].lower(), each) for each in quoted}
    marked = {html.escape(value), html.escape(value, quote=False)}
    packed = {value.encode().hex(), value.encode().hex().upper(), *_in_base64(value.encode())}
    return {value} | escaped | twice | quoted | marked | packed


_ESCAPED_BYTE = re.compile("%[0-9A-F]{2}")


def _in_sql(value: str) -> Iterator[str]:
    """Yield the forms of a value in an SQL literal or identifier: escaped with backslashes, or with doubled quotes."""
    yield value.translate(_SQL_ESCAPES)
    yield value.translate(_SQL_ESCAPES).replace("`", r"\`")
    for mark in ("'", '"', "`"):
        yield value.replace(mark, 2 * mark)


def _in_base64(data: bytes) -> Iterator[str]:
    """Yield the forms of data in base64, alone or inside longer data such as `user:password`, in both alphabets.

    Three bytes become four characters, so the form depends on the offset modulo three. Characters at the edges, which
    also encode neighbouring bytes, are left out.
    """
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        yield encode(data).decode()
        for before in range(3):
            all_of_it = encode(bytes(before) + data).decode()
            yield all_of_it[-(-before * 8 // 6) : (before + len(data)) * 8 // 6]


def mask_text(text: str) -> str:
    """Replace known values in the text with stars, also fragments of values next to dots that mark a cut."""
    known = _known
    if known is None:
        return text
    text = known.text.sub(lambda found: known.forms[found[0]], text)
    return _mask_cut(text, known) if _DOTS.search(text) else text


def _mask_cut(text: str, known: _Known) -> str:
    """Replace beginnings of known values before dots, and ends of known values after dots, with stars."""
    pieces = _DOTS.split(text)
    dots = [*_DOTS.findall(text), ""]
    masked = []
    for number, piece in enumerate(pieces):
        if number and (end := max((_length_after(piece, form) for form in known.forms), default=0)):
            piece = STARS + piece[end:]
        if dots[number] and (begin := max((_length_before(piece, form) for form in known.forms), default=0)):
            piece = piece[:-begin] + STARS
        masked += [piece, dots[number]]
    return "".join(masked)


def _length_before(text: str, form: str) -> int:
    """Return the length of the longest suffix of the text that is a proper prefix of the form; 0 if too short."""
    if len(form) < CUT_LENGTH_MIN or form[:CUT_LENGTH_MIN] not in text[-len(form) :]:
        return 0
    return next((size for size in range(len(form) - 1, CUT_LENGTH_MIN - 1, -1) if text.endswith(form[:size])), 0)


def _length_after(text: str, form: str) -> int:
    """Return the length of the longest prefix of the text that is a proper suffix of the form; 0 if too short."""
    if len(form) < CUT_LENGTH_MIN or form[-CUT_LENGTH_MIN:] not in text[: len(form)]:
        return 0
    return next((size for size in range(len(form) - 1, CUT_LENGTH_MIN - 1, -1) if text.startswith(form[-size:])), 0)


def mask_bytes(data: bytes) -> bytes:
    """Replace known values in the bytes with stars."""
    known = _known
    return data if known is None else known.data.sub(lambda found: known.forms[found[0].decode()].encode(), data)


def is_mentioned(text: str) -> bool:
    """Return whether the text contains a known value."""
    return _known is not None and _known.text.search(text) is not None


def _add(forms: dict[str, str], values: Iterable[str]) -> None:
    global _known
    all_forms = {**(_known.forms if _known else {}), **forms}
    ordered = sorted(all_forms, key=lambda form: (-len(form), form))
    _known = _Known(
        all_forms,
        re.compile("|".join(map(re.escape, ordered))),
        re.compile(b"|".join(re.escape(form.encode()) for form in ordered)),
        tuple(form.encode() for form in ordered),
        (_known.values if _known else frozenset()) | set(values),
    )


class Masking:
    """Masks a stream of bytes in pieces. The end of a piece is held back if a known value may begin there."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        """Add a piece; return the masked bytes that can be written now."""
        known = _known
        if known is None:
            return data
        data = self._held + data
        written, position = [], 0
        waits_at = _waits_at(data, 0, known)
        for found in known.data.finditer(data):
            if found.start() >= waits_at:
                break
            written += [data[position : found.start()], known.forms[found[0].decode()].encode()]
            position = found.end()
            if position > waits_at:
                waits_at = _waits_at(data, position, known)
        written.append(data[position:waits_at])
        self._held = data[waits_at:]
        return b"".join(written)

    def end(self) -> bytes:
        """Return the bytes that were held back, masked. Call it when the stream ends."""
        held, self._held = self._held, b""
        return mask_bytes(held)


def _waits_at(data: bytes, start: int, known: _Known) -> int:
    """Return the position from which the data's end may be the beginning of a known value; its length if there is none.

    Only positions from `start` on are considered.
    """
    return min(
        (len(data) - length for form in known.begins for length in _overlaps(data, start, form)), default=len(data)
    )


def _overlaps(data: bytes, start: int, form: bytes) -> Iterator[int]:
    """Yield the length of the longest suffix of `data[start:]` that is a proper prefix of the form, if there is one."""
    last = data[-1:]
    if not last:
        return
    length = form.rfind(last, 0, min(len(form) - 1, len(data) - start)) + 1
    while length:
        if data.endswith(form[:length]):
            yield length
            return  # a shorter overlap begins later, so it does not matter
        length = form.rfind(last, 0, length - 1) + 1
