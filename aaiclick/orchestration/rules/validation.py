"""Checks of input from outside (names, keys, ids, paging, filters), and safe texts of values for messages and logs."""

from __future__ import annotations

import difflib
import re
import reprlib
from enum import StrEnum
from typing import NoReturn, TypeVar

from aaiclick.errors import InputError
from aaiclick.wording import written

NAME_LENGTH_MAX = 200
PATTERN_LENGTH_MAX = 200
LIMIT_DEFAULT = 100
LIMIT_MAX = 1000
ID_MAX = 2**63 - 1
SECONDS_MAX = 10 * 365 * 86400.0

# Listed by hand, not by category: a name accepted on one Python must not be refused on one with an older Unicode table.
# The joiners U+200C and U+200D stay allowed: emoji and several scripts need them.
_HIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_JOINERS = "\u200c\u200d"
_SECRET_FIELD = re.compile(r"passw|secret|token(?! (?:id|name)$)|api_?key|credential", re.IGNORECASE)
# The rest of a name is limited to 100 characters: otherwise a text like tokentokentoken… would be searched for minutes.
_SECRET_PAIR = re.compile(
    r"((?:passw|secret|token|api_?key|credential)\w{0,100}+['\"]?\s*[:=,]\s*['\"]?)[^\s,'\")}\]]+", re.IGNORECASE
)
_URL_PASSWORD = re.compile(r"(://[^\s:/@]*:)[^\s/@]*@")
_OUR_TOKEN = re.compile(r"(aai_[0-9]{1,19}_)[A-Za-z0-9_-]{10,}")

Status = TypeVar("Status", bound=StrEnum)


# ---------------------------------------------------------------- showing


def shorten(value: object, limit: int = 80) -> str:
    """Return the value as one short line for an error message, with secrets masked, whatever its repr does."""
    try:
        if (text := written(value)) is None:
            text = repr(value[:1000]) if isinstance(value, str | bytes) else _brief(limit).repr(value)
    except Exception:  # repr() is the user's code: it may raise anything
        text = f"<{type(value).__name__} that cannot be shown>"
    text = escape_for_terminal(mask_secrets(text))
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _brief(limit: int) -> reprlib.Repr:
    brief = reprlib.Repr()
    brief.maxlevel = 3
    brief.maxstring = brief.maxother = brief.maxlong = limit
    return brief


def shown(value: object, field: str) -> str:
    """Return the value shortened, or stars if the field's name says that it is a secret."""
    return "***" if _SECRET_FIELD.search(field) else shorten(value)


def mask_secrets(text: str) -> str:
    """Replace passwords in URLs, tokens of aaiclick and values of names like «secret» by stars."""
    return _SECRET_PAIR.sub(r"\1***", _OUR_TOKEN.sub(r"\1***", _URL_PASSWORD.sub(r"\1***@", text)))


def escape_for_terminal(text: str) -> str:
    """Escape control, ANSI, bidirectional and invisible characters and line breaks."""
    return _HIDDEN.sub(lambda found: _escaped(ord(found[0])), text)


def _escaped(code: int) -> str:
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


# ---------------------------------------------------------------- strings


def is_storable(text: str) -> bool:
    """Return whether every database can store the text: no NUL, no lone surrogate."""
    if "\0" in text:
        return False
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_name(value: object, field: str = "name") -> str:
    """Return the name if it compares and displays alike on every database and page, else raise InputError.

    Blanks at the ends are refused: for MariaDB "a" and "a " are equal, for the others they are not.
    """
    text = _line(value, field, NAME_LENGTH_MAX)
    if not text.strip().strip(_JOINERS):
        _refuse(field, value, "it has no visible character", "Give it a visible name.")
    if text != text.strip():
        _refuse(field, value, "it begins or ends with a blank", f"Write {shorten(text.strip())}.")
    return text


def check_key(value: object, field: str = "key") -> str:
    """Check a job's idempotency key, by the rules of names."""
    return check_name(value, field)


def _line(value: object, field: str, length_max: int) -> str:
    if type(value) is not str:
        _refuse(field, value, "it must be a str", "Give a text.")
    if not 1 <= len(value) <= length_max:
        _refuse(field, value, f"it has {len(value)} characters, allowed are 1 to {length_max}", "")
    if found := _HIDDEN.search(value):
        rule = f"it contains the character U+{ord(found[0]):04X} at position {found.start()}"
        _refuse(field, value, rule, "Control, bidirectional and invisible characters are not allowed.")
    return value


def like_pattern(value: object, field: str = "name_like") -> tuple[str, str]:
    r"""Return a LIKE pattern and its escape character. % and _ are wildcards, all else is literal, even \."""
    return _line(value, field, PATTERN_LENGTH_MAX).replace("!", "!!"), "!"


# ---------------------------------------------------------------- numbers


def check_id(value: object, field: str = "id") -> int:
    """Return the id if it is an int from 1 to 2**63 - 1, else raise InputError."""
    return _whole(value, field, 1, ID_MAX, "Ids are positive 63-bit numbers.")


def check_paging(limit: object = None, offset: object = None) -> tuple[int, int]:
    """Return the checked limit and offset of a page; None means the default."""
    hint = "Read further pages with offset."
    size = LIMIT_DEFAULT if limit is None else _whole(limit, "limit", 1, LIMIT_MAX, hint)
    start = 0 if offset is None else _whole(offset, "offset", 0, ID_MAX, "The first row has offset 0.")
    return size, start


def _whole(value: object, field: str, least: int, most: int, hint: str) -> int:
    if type(value) is not int:
        _refuse(field, value, "it must be a whole number", hint)
    if not least <= value <= most:
        _refuse(field, value, f"allowed are {least} to {most}", hint)
    return value


def check_seconds(value: object, field: str, hint: str = "") -> float:
    """Return a duration that every clock and database can add to a date: above 0 and at most ten years."""
    if type(value) not in (int, float) or not 0 < value <= SECONDS_MAX:  # type: ignore[operator]
        _refuse(field, value, f"it must be a number of seconds above 0, at most {SECONDS_MAX:.0f}", hint)
    return value  # type: ignore[return-value]


# ---------------------------------------------------------------- choices


def check_status(value: object, kind: type[Status], field: str = "status") -> Status:
    """Return the member that a text names, in upper or lower case; raise InputError if there is none."""
    known = {member.value: member for member in kind}
    if isinstance(value, kind):
        return value
    if not isinstance(value, str):
        _refuse(field, value, "it must be a str", f"Valid are: {', '.join(known)}.")
    if member := known.get(value.lower()):
        return member
    near = difflib.get_close_matches(value[:50].lower(), known, n=1)
    guess = f"Did you mean {near[0]}? " if near else ""
    _refuse(field, value, f"there is no such {field}", f"{guess}Valid are: {', '.join(known)}.")


def _refuse(field: str, value: object, rule: str, hint: str) -> NoReturn:
    raise InputError(field=field, value=shown(value, field), rule=rule, hint=hint)
