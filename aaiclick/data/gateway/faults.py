"""Errors as ClickHouse reports them over HTTP: a code, a text, a status."""

from __future__ import annotations

import re

UNKNOWN_EXCEPTION = 1002

STATUSES = {
    400: {6, 8, 15, 25, 26, 27, 36, 37, 38, 41, 44, 53, 62, 72, 117, 123, 167, 168, 223, 321, 376, 427, 441, 675, 676},
    401: {194},
    403: {192, 193, 497, 512, 516},
    404: {46, 47, 50, 56, 60, 63, 73, 78, 81, 115, 152, 336, 511},
    408: {159},
    411: {381},
    413: {229},
    501: {48},
    503: {76, 202, 209, 439},  # 202, too many queries at once, is the gateway's choice: clients try again after 503
}
_STATUS_OF = {code: status for status, codes in STATUSES.items() for code in codes}
_CODE = re.compile(r"Code: (\d+)\.")


class Fault(Exception):
    """An error for the client; the text begins with the code."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code

    @property
    def status(self) -> int:
        """Return the HTTP status that ClickHouse gives with this code."""
        return _STATUS_OF.get(self.code, 500)


def fault(code: int, name: str, text: str) -> Fault:
    """Return an error that the gateway itself found, in the form of the engine's."""
    return Fault(code, f"Code: {code}. DB::Exception: {text} ({name})")


def as_fault(error: Exception) -> Fault:
    """Return an error of chdb as a Fault, without the text that chdb's Python code put before it."""
    if isinstance(error, Fault):
        return error
    text = str(error)
    found = _CODE.search(text)
    if found is None:
        return Fault(UNKNOWN_EXCEPTION, f"Code: {UNKNOWN_EXCEPTION}. {type(error).__name__}: {text}")
    return Fault(int(found[1]), text[found.start() :].strip())
