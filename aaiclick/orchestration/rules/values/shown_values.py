"""Values for display to people and API clients: plain JSON of limited size, with secrets masked."""

from __future__ import annotations

import base64
import json
import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from aaiclick.orchestration.rules.secrets import Secret
from aaiclick.orchestration.rules.validation import mask_secrets, shorten, shown
from aaiclick.orchestration.rules.values.arrays import is_row, number_in
from aaiclick.orchestration.rules.values.encoding import decode_kwargs
from aaiclick.orchestration.rules.values.fields import fields_of, unsealed
from aaiclick.orchestration.rules.values.plain_kinds import Sealed
from aaiclick.orchestration.rules.values.reference_marks import without_schema
from aaiclick.orchestration.rules.values.registry import registered
from aaiclick.telemetry.masks import STARS, mask_text

T = TypeVar("T")

ARGUMENT_LENGTH_MAX = 500
"""Characters of one argument that are displayed."""

ARGUMENTS_MAX = 50

RESULT_BYTES_MAX = 1_000_000
DEPTH_MAX = 50


class ShownValue(NamedTuple):
    """A value as JSON; if it is too large, `complete` is False and the value is the beginning of its JSON text."""

    value: Any
    complete: bool
    size: int
    """The length of its JSON in characters; a lower bound if it is not complete."""


def show_value(value: object, length_max: int = RESULT_BYTES_MAX) -> ShownValue:
    """Return the value as plain JSON, or the beginning of its JSON text."""
    plain = _Plain(length_max)
    found = plain(value)
    text = json.dumps(found, ensure_ascii=False)
    if len(text) <= length_max and not plain.is_cut:
        return ShownValue(found, True, len(text))
    return ShownValue(text[:length_max], False, len(text))


def show_arguments(arguments: Mapping[str, object], length_max: int = ARGUMENT_LENGTH_MAX) -> dict[str, Any]:
    """Return arguments by name, each cut to `length_max`; stars for those whose names say that they are secrets."""
    found: dict[str, Any] = {}
    for name, value in list(arguments.items())[:ARGUMENTS_MAX]:
        if shown("", name) == STARS and not isinstance(value, Secret):
            found[name] = STARS
            continue
        part = show_value(value, length_max)
        found[name] = part.value if part.complete else f"{part.value}…"
    if len(arguments) > ARGUMENTS_MAX:
        found["…"] = f"{len(arguments) - ARGUMENTS_MAX} more"
    return found


def show_stored_arguments(kwargs_json: str) -> dict[str, Any]:
    """Return a task's stored arguments for display; references are shown by id, and no user module is imported."""
    return show_arguments(decode_kwargs(kwargs_json, _named, importing=False))


def _named(kind: str, payload: Any) -> dict[str, object]:
    """Return the displayed form of a reference."""
    if isinstance(payload, dict):
        return {"object_type": kind, **without_schema(payload)}
    return {f"{kind}_id": str(payload)}


class _Plain:
    """Converts a value to plain JSON up to a limit of parts and characters; parts beyond it are not visited.

    The result has the form in which a client would pass the value, whether or not its class is loaded here.
    """

    def __init__(self, most: int) -> None:
        self.most = self.left = most

    @property
    def is_cut(self) -> bool:
        return self.left < 0

    def __call__(self, value: object, depth: int = DEPTH_MAX) -> Any:
        self.left -= 1
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, Enum):
            return self(value.value, depth)
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, int):
            return int(value) if abs(value) < 2**53 else shorten(int(value), ARGUMENT_LENGTH_MAX)
        if isinstance(value, float):
            return float(value) if math.isfinite(value) else str(float(value))
        if depth and isinstance(value, Mapping):
            return {self._text(str(name)): self._member(name, each, depth) for name, each in self._some(value.items())}
        if depth and (isinstance(value, list | tuple | set | frozenset | deque) or is_row(value)):
            return [self(each, depth - 1) for each in self._some(value)]
        return self._other(value, depth)

    def _other(self, value: object, depth: int) -> Any:
        if (text := _in_text(value, self.most)) is not None:
            return self._text(text)
        if isinstance(value, Sealed):
            return self(unsealed(value.kind, value.payload, value.lowered), depth)
        if depth and (fields := fields_of(value)) is not None:
            return self(fields, depth)
        if depth and (how := registered(type(value))) is not None:
            try:
                return self(how.encode(value), depth - 1)
            except Exception as error:  # encode is the user's code
                return self._text(f"<{how.name}, whose encode raised {type(error).__name__}>")
        item = number_in(value)
        return self._text(shorten(value, ARGUMENT_LENGTH_MAX)) if item is None else self(item, depth)

    def _some(self, items: Iterable[T]) -> Iterator[T]:
        for item in items:
            if self.left < 0:
                return
            yield item

    def _member(self, name: object, value: object, depth: int) -> Any:
        is_secret = isinstance(name, str) and shown("", name) == STARS and value is not None
        return STARS if is_secret else self(value, depth - 1)

    def _text(self, text: str) -> str:
        """Return the text with secrets masked, and with NUL and lone surrogates escaped."""
        masked = mask_secrets(mask_text(text[: 20 * self.most]))
        self.left -= len(masked)
        return masked.replace("\x00", "\\x00").encode("utf-8", "backslashreplace").decode()


def _in_text(value: object, most: int) -> str | None:
    """Return the text that represents the value in JSON; None if it has none."""
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, Decimal | UUID | PurePath):
        return str(value)
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value[: 20 * most]).decode()
    if isinstance(value, timedelta):
        import msgspec  # here, to keep start-up light

        return str(msgspec.to_builtins(value))
    return None
