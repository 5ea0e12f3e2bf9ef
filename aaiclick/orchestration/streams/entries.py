"""Entries of inbound streams, checked: from the bytes of a stranger to a job or an order, or a refusal in one line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from aaiclick.errors import InputError
from aaiclick.orchestration.rules.validation import NAME_LENGTH_MAX, check_key, check_name, shorten

FIELDS = ("job_id", "type", "payload")


@dataclass(frozen=True, slots=True)
class Entry:
    """What an entry asks for: the registered job or the order `type`, with its arguments."""

    job_id: str
    type: str
    payload: Any


def read_entry(fields: Mapping[bytes, bytes], origin: str, *, bytes_max: int) -> Entry:
    """Return what an entry says; raise InputError if it is not what we accept. Its name `origin` is the default id."""
    size = sum(len(name) + len(value) for name, value in fields.items())
    if size > bytes_max:
        _refuse("entry", f"{size} bytes", f"it must have at most {bytes_max} bytes", "Put large data elsewhere.")
    known = {name: value for name, value in fields.items() if name in {each.encode() for each in FIELDS}}
    if unknown := sorted(fields.keys() - known.keys()):
        hint = f"The fields are {', '.join(FIELDS)}."
        _refuse("entry", shorten(repr(unknown[0])), "there is no such field", hint)
    texts = {name.decode(): _text(name.decode(), value) for name, value in known.items()}
    if "type" not in texts:
        _refuse("entry", origin, "it has no field type", "Give type the name of a registered job.")
    return Entry(
        job_id=check_key(texts.get("job_id", origin), "job_id"),
        type=check_name(texts["type"], "type"),
        payload=_json(texts.get("payload", "{}")),
    )


def readable_id(fields: Mapping[bytes, bytes], origin: str) -> str:
    """Return the job's id as far as it can be read, for the record of a refusal."""
    return fields.get(b"job_id", origin.encode()).decode(errors="replace")[:NAME_LENGTH_MAX]


def _text(field: str, value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        rule = f"byte {error.start} is not UTF-8"
        _refuse(field, shorten(value.decode(errors="replace")), rule, "Write it in UTF-8.")


def _json(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_no_constant, object_pairs_hook=_each_once)
    except RecursionError:
        _refuse("payload", shorten(text), "it is nested too deeply", "")
    except ValueError as error:
        _refuse("payload", shorten(text), f"it is not JSON: {error}", 'Write an object, such as {"day": "2026-11-19"}.')


def _no_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number of JSON")


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a member occurs twice")
    return found


def _refuse(field: str, value: str, rule: str, hint: str) -> NoReturn:
    raise InputError(field=field, value=value, rule=rule, hint=hint)
