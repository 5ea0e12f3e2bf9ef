"""Reads request bodies: limits their size and time, and refuses JSON with repeated fields."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import Message, Receive

from aaiclick.errors import InputError, ValueTooLarge
from aaiclick.orchestration.rules.validation import shorten

BODY_ROOM_BYTES = 100_000
"""Bytes that a body may have in addition to the limit of a job's arguments."""

LENGTH_DIGITS_MAX = 18

BODY_S_MAX = 60.0
"""Seconds until the whole body has arrived."""


async def read_body(headers: Headers, receive: Receive, bytes_max: int) -> Receive:
    """Read the whole body and return a `receive` that gives it again.

    Raise ValueTooLarge or HTTPException if it is too large, too late or cut off, InputError if a field is repeated.
    """
    whole = await whole_body(headers, receive, bytes_max)
    refuse_doubles(whole)
    body: list[Message] = [{"type": "http.request", "body": whole, "more_body": False}]

    async def again() -> Message:
        return body.pop() if body else await receive()

    return again


async def whole_body(headers: Headers, receive: Receive, bytes_max: int) -> bytes:
    """Read the whole body. Raise ValueTooLarge or HTTPException if it is too large, too late or cut off."""
    try:
        async with asyncio.timeout(BODY_S_MAX):
            return await _whole(headers, receive, bytes_max)
    except TimeoutError:
        raise HTTPException(408, f"The body had not arrived after {BODY_S_MAX:g} s.") from None


async def _whole(headers: Headers, receive: Receive, bytes_max: int) -> bytes:
    announced = headers.get("content-length", "0")[: LENGTH_DIGITS_MAX + 1]
    if announced.isascii() and announced.isdecimal() and int(announced) > bytes_max:
        raise _too_large(announced, bytes_max)
    parts, size, more = [], 0, True
    while more:
        message = await receive()
        if message["type"] != "http.request":  # a part of a body may look complete
            raise HTTPException(400, "The body was cut off.")
        part, more = message.get("body", b""), message.get("more_body", False)
        parts.append(part)
        size += len(part)
        if size > bytes_max:
            raise _too_large(f"more than {size}", bytes_max)
    return b"".join(parts)


def refuse_doubles(body: bytes) -> None:
    """Raise InputError for JSON with a repeated field: other programs may read the first, Python keeps the last.

    Malformed JSON passes: the route that parses it refuses it.
    """
    if not body:
        return
    try:
        json.loads(body, object_pairs_hook=_each_once)
    except InputError:
        raise
    except (ValueError, RecursionError):
        return


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise InputError(field="body", value=shorten(name), rule="this field is given twice", hint="")
        found[name] = value
    return found


def _too_large(size: str, bytes_max: int) -> ValueTooLarge:
    return ValueTooLarge(path="The body", size=size, limit=bytes_max, setting="AAICLICK_VALUE_BYTES_MAX")
