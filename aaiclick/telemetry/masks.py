"""Values that must appear nowhere: whatever this process has resolved is masked in all that it writes or reports.

What is known here is only ever added to, for as long as the process lives: a thread that outlives its run still has the
value that it was given.
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
"""A shorter password of an address is masked by those who print addresses, not wherever it occurs."""


CUT_LENGTH_MIN = 4
"""What is left of a value that was cut, if it is not shorter, is masked beside the dots that say so."""

_DOTS = re.compile(r"…|\.{3}")
_SQL_ESCAPES = str.maketrans(
    {"\\": r"\\", "'": r"\'", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\0": r"\0", "\b": r"\b", "\f": r"\f"}
)


class _Known(NamedTuple):
    """All that is masked, as text and as bytes; a longer form comes before one that it begins with."""

    forms: dict[str, str]
    text: re.Pattern[str]
    data: re.Pattern[bytes]
    begins: tuple[bytes, ...]
    values: frozenset[str]


_known: _Known | None = None
_tell: Callable[[list[str]], None] | None = None


def remember(values: Iterable[str]) -> None:
    """Mask these from now on, as they are and as Python, JSON, SQL, HTML, addresses, hex and base64 write them."""
    known = _known.values if _known else frozenset()
    new = sorted({value for value in values if value and value not in known})
    if not new:
        return
    if _tell is not None:
        _tell(new)  # before anything can be printed: whoever keeps our output masks it
    _add({form: STARS for value in new for form in forms_of(value)}, new)


def remember_passwords(urls: Iterable[str]) -> None:
    """Mask the passwords of these addresses wherever they stand in an address."""
    forms: dict[str, str] = {}
    for url in urls:
        try:
            written = urlsplit(url).password or ""
        except ValueError:  # no address that can be taken apart
            continue
        for password in {written, unquote(written)}:
            if len(password) >= PASSWORD_LENGTH_MIN:
                forms |= {f":{form}@": f":{STARS}@" for form in forms_of(password)}
    if forms:
        _add(forms, ())


def tell_new_ones(tell: Callable[[list[str]], None] | None) -> None:
    """Call this with each value before it is known here: someone else keeps what this process prints."""
    global _tell
    _tell = tell


def forget_all() -> None:
    """Know nothing, as a new process does."""
    global _known
    _known = None


def forms_of(value: str) -> set[str]:
    """How a value may be written by those who do not know what it is."""
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
    """How it stands in a statement: with backslashes, or with its quotes doubled; as a text or as a name."""
    yield value.translate(_SQL_ESCAPES)
    yield value.translate(_SQL_ESCAPES).replace("`", r"\`")
    for mark in ("'", '"', "`"):
        yield value.replace(mark, 2 * mark)


def _in_base64(data: bytes) -> Iterator[str]:
    """How base64 writes it, alone or inside of something longer, such as `user:password`; both alphabets.

    Three bytes become four characters: where it begins among the three decides what it looks like. Of characters at
    the edges that depend on its neighbours, nothing is said.
    """
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        yield encode(data).decode()
        for before in range(3):
            all_of_it = encode(bytes(before) + data).decode()
            yield all_of_it[-(-before * 8 // 6) : (before + len(data)) * 8 // 6]


def mask_text(text: str) -> str:
    """The text with stars where something known stood, also where it was cut and dots say so."""
    known = _known
    if known is None:
        return text
    text = known.text.sub(lambda found: known.forms[found[0]], text)
    return _mask_cut(text, known) if _DOTS.search(text) else text


def _mask_cut(text: str, known: _Known) -> str:
    """The text without beginnings of values before dots, and ends of values after them."""
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
    """How much at the end of the text is the beginning of a form."""
    if len(form) < CUT_LENGTH_MIN or form[:CUT_LENGTH_MIN] not in text[-len(form) :]:
        return 0
    return next((size for size in range(len(form) - 1, CUT_LENGTH_MIN - 1, -1) if text.endswith(form[:size])), 0)


def _length_after(text: str, form: str) -> int:
    """How much at the beginning of the text is the end of a form."""
    if len(form) < CUT_LENGTH_MIN or form[-CUT_LENGTH_MIN:] not in text[: len(form)]:
        return 0
    return next((size for size in range(len(form) - 1, CUT_LENGTH_MIN - 1, -1) if text.startswith(form[-size:])), 0)


def mask_bytes(data: bytes) -> bytes:
    """The bytes with stars where something known stood."""
    known = _known
    return data if known is None else known.data.sub(lambda found: known.forms[found[0].decode()].encode(), data)


def is_mentioned(text: str) -> bool:
    """Whether something known stands in the text."""
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
    """Masks a stream of bytes that comes in pieces: what may be the beginning of a value waits for the next piece."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        """What can be written now."""
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
        """The rest, when nothing more comes."""
        held, self._held = self._held, b""
        return mask_bytes(held)


def _waits_at(data: bytes, start: int, known: _Known) -> int:
    """Where the end of the data begins that may be the beginning of something known; its length if none may."""
    return min(
        (len(data) - length for form in known.begins for length in _overlaps(data, start, form)), default=len(data)
    )


def _overlaps(data: bytes, start: int, form: bytes) -> Iterator[int]:
    """How many bytes at the end of the data, after `start`, are the first ones of the form, but not all of it."""
    last = data[-1:]
    if not last:
        return
    length = form.rfind(last, 0, min(len(form) - 1, len(data) - start)) + 1
    while length:
        if data.endswith(form[:length]):
            yield length
            return  # shorter ones wait no earlier
        length = form.rfind(last, 0, length - 1) + 1
