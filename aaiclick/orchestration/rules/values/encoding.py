"""Encodes arguments and results as JSON text and decodes them exactly; refuses others, naming the place in the value.

A value is stored in an envelope: `{"object_type": "pyobj", "value": <JSON>, "marks": [[path, kind, payload?], …]}`.
A mark says how to restore the value from the JSON at its path. User data is therefore never searched for markers: a
dict that looks like an envelope stays a dict. Store the text in a text column: JSONB would turn 1e16 into an int.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from aaiclick.errors import ValueNotPortable, ValueTooLarge
from aaiclick.orchestration.rules.validation import is_storable, shorten
from aaiclick.orchestration.rules.values.class_names import NotLoaded, Unreadable, find_class
from aaiclick.orchestration.rules.values.moments import UnknownZone
from aaiclick.orchestration.rules.values.plain_kinds import BUILD, OF_CLASSES, Sealed, is_plain
from aaiclick.orchestration.rules.values.references import check_reference, is_reference
from aaiclick.orchestration.rules.values.registry import find_registered
from aaiclick.orchestration.rules.values.walk import DEPTH_MAX as DEPTH_MAX
from aaiclick.orchestration.rules.values.walk import SIZE_SETTING, Mark, Walk

NODE_BYTES = 64  # the size of a reference to a task or group, which does not count against limits

Resolve = Callable[[str, object], object]


class Reference(NamedTuple):
    """Stands for a task, group, Object or View in values that are decoded without a resolver."""

    kind: str
    payload: object


# ---------------------------------------------------------------- encoding

_dump = json.JSONEncoder(ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":")).encode


def encode_value(
    value: object, *, path: str = "value", bytes_max: int, mark: Mark | None = None, setting: str = SIZE_SETTING
) -> str:
    """Return the JSON text of one value.

    `mark` is called with values of unknown types: it returns (kind, payload) for references such as tasks, else None.
    """
    if value is None:
        return "null"
    envelope = _envelope(value, path, bytes_max, mark, setting)
    return _within(_dump(envelope), path, bytes_max, [envelope], setting)


def encode_kwargs(
    kwargs: Mapping[str, object],
    *,
    bytes_max: int,
    mark: Mark | None = None,
    references: bool = False,
    setting: str = SIZE_SETTING,
) -> str:
    """Return the JSON text of keyword arguments, each in an envelope; `references` permits reference dicts."""
    envelopes: dict[str, object] = {}
    for name, value in kwargs.items():
        if type(name) is not str or not is_storable(name):
            raise ValueNotPortable(
                path="kwargs", value=shorten(name), rule="an argument's name must be a plain text", hint=""
            )
        if references and is_reference(value):
            value = check_reference(value, f"kwargs.{name}")
            if value["object_type"] != "pyobj":
                envelopes[name] = value
                continue
            value = value["value"]
        if is_plain(value):
            envelopes[name] = {"object_type": "pyobj", "value": value}
        else:
            envelopes[name] = _envelope(value, f"kwargs.{name}", bytes_max, mark, setting)
    return _within(_dump(envelopes), "kwargs", bytes_max, envelopes.values(), setting)


def _within(text: str, path: str, bytes_max: int, envelopes: Iterable[object], setting: str) -> str:
    """Return the text, or raise ValueTooLarge; references to tasks and groups do not count, however many there are."""
    size = len(text) if text.isascii() else len(text.encode())
    if size > bytes_max:
        size -= NODE_BYTES * sum(map(_nodes_in, envelopes))
    if size > bytes_max:
        raise ValueTooLarge(path=path, size=size, limit=bytes_max, setting=setting)
    return text


def _nodes_in(envelope: object) -> int:
    marks = envelope.get("marks", ()) if isinstance(envelope, dict) else ()
    return sum(kind in ("task", "group") for _, kind, *_ in marks)


def _envelope(value: object, path: str, bytes_max: int, mark: Mark | None, setting: str) -> dict[str, object]:
    walk = Walk(value, path, bytes_max, mark, setting)
    envelope: dict[str, object] = {"object_type": "pyobj", "value": walk.lower(value)}
    if walk.marks:
        place, kind, *payload = walk.marks[-1]
        if not place and kind in ("object", "view") and isinstance(payload[0], dict):
            return {"object_type": kind, **payload[0]}
        envelope["marks"] = walk.marks
    return envelope


def reference_in(value: object) -> tuple[str, dict[str, Any]] | None:
    """Return the mark (kind, payload) of an Object or View; None for anything else."""
    refer = getattr(type(value), "__aaiclick_reference__", None)
    if refer is None:
        return None
    found: dict[str, Any] = dict(refer(value))
    return found.pop("object_type"), found


# ---------------------------------------------------------------- decoding

_scan = json.JSONDecoder().raw_decode


def _load(text: str) -> Any:
    """Return what `json.loads` does, in a third of the time if the text is as we write it, without blanks around it."""
    try:
        found, end = _scan(text)
    except ValueError:
        found, end = None, -1
    return found if end == len(text) else json.loads(text)


def decode_value(text: str, resolve: Resolve | None = None, *, importing: bool = True) -> object:
    """Return the value of an encoded text; `resolve` returns what a mark of the caller's `mark` stands for.

    Without `importing`, no module of the user is imported: values of classes that are not loaded become Sealed.
    """
    envelope = _load(text)
    return None if envelope is None else _open(envelope, resolve or Reference, importing)


def decode_kwargs(text: str, resolve: Resolve | None = None, *, importing: bool = True) -> dict[str, object]:
    """Return the keyword arguments of an encoded text; see `decode_value`."""
    return {name: _open(envelope, resolve or Reference, importing) for name, envelope in _load(text).items()}


def _open(envelope: dict[str, Any], resolve: Resolve, importing: bool) -> object:
    kind = envelope.pop("object_type")
    if kind != "pyobj":
        return resolve(kind, envelope)
    holder: list[Any] = [envelope["value"]]
    for path, kind, *payload in envelope.get("marks", ()):
        place: Any = holder
        last: Any = 0
        for step in path:
            place, last = place[last], step
        build = BUILD.get(kind)
        if build is None:
            place[last] = resolve(kind, *payload)
        elif importing or kind not in OF_CLASSES or _is_loaded(kind, payload):
            place[last] = _built(build, place[last], payload, path)
        else:
            place[last] = Sealed(kind, payload, place[last])
    return holder[0]


def _built(build: Callable[..., object], lowered: Any, payload: list[Any], path: list[str | int]) -> object:
    cause: Exception
    try:
        return build(lowered, *payload)
    except UnknownZone as error:
        rule, hint, cause = str(error), "Install tzdata.", error
    except Unreadable as error:
        rule, hint, cause = error.rule, error.hint, error
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, struct.error) as error:
        rule, hint, cause = f"its stored form cannot be read ({type(error).__name__})", "", error
    place = "value" + "".join(f".{step}" if isinstance(step, str) else f"[{step}]" for step in path)
    raise ValueNotPortable(path=place, value=shorten(lowered), rule=rule, hint=hint) from cause


def _is_loaded(kind: str, payload: list[Any]) -> bool:
    """Return whether a value's class can be found without importing its module."""
    try:
        if kind == "type":
            find_registered(*payload, importing=False)
        else:
            find_class(payload[0], importing=False)
    except (NotLoaded, Unreadable, IndexError):
        return False
    return True
