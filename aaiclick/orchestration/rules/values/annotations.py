"""Converts JSON arguments from outside to the types of a function's annotations, or refuses them by name.

Values with annotations that cannot be resolved, or that msgspec does not support, are left unchanged.
"""

from __future__ import annotations

import inspect
import re
import types
import typing
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Any, Literal, NoReturn, Union

from aaiclick.errors import InputError
from aaiclick.orchestration.rules.validation import shorten, shown
from aaiclick.orchestration.rules.values.registry import registered

Spec = list[Any]
_PLACE = re.compile(r"(.*?)(?: - at (`key` in )?`\$(.*)`)?", re.DOTALL)
_STEP = re.compile(r"\.[^.\[]+|\[[^\]]*\]")
_NAMES: dict[str, type] = {"int": int, "float": float, "str": str, "bool": bool}


class _Unknown(Exception):
    """An annotation whose values cannot be converted from JSON."""


def hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the annotations of the parameters, without those that cannot be resolved."""
    try:
        found = typing.get_type_hints(function, include_extras=True)
    except Exception:  # resolving an annotation runs the user's code, which may raise anything
        try:
            raw = inspect.get_annotations(function)
        except Exception:  # a callable object without annotations, or one that raises
            return {}
        found = {name: hint for name, hint in raw.items() if not isinstance(hint, str)}
    return {name: hint for name, hint in found.items() if name != "return"}


def converted(hints: Mapping[str, Any], kwargs: Mapping[str, object]) -> dict[str, object]:
    """Return the arguments converted to their annotations; raise InputError, which names the argument, if one fails."""
    return {name: _converted(value, hints[name], name) if name in hints else value for name, value in kwargs.items()}


def _converted(value: object, hint: Any, name: str) -> object:
    import msgspec  # here, to keep start-up light

    try:
        return msgspec.convert(value, hint, str_keys=True, dec_hook=_of_class)
    except _Unknown:
        return value
    except msgspec.ValidationError as error:
        _refuse(name, value, str(error))
    except Exception:  # msgspec does not support the annotation
        return _one_of(value, hint, name)


def _one_of(value: object, hint: Any, name: str) -> object:
    """Convert to the first type of a union that fits: msgspec refuses unions of types that JSON writes alike."""
    if typing.get_origin(hint) not in (Union, types.UnionType):
        return value
    refused: InputError | None = None
    for each in typing.get_args(hint):
        try:
            return _converted(value, each, name)
        except InputError as error:
            refused = refused or error
    assert refused is not None
    raise refused


def _refuse(name: str, value: object, message: str) -> NoReturn:
    rule, of_key, place = _PLACE.fullmatch(message).groups("")  # type: ignore[union-attr]  # it matches every text
    field = f"{'a key of ' if of_key else ''}kwargs.{name}{place}"
    text = rule.replace("`", "").split("\n")[0][:200]
    culprit = shown(_at(value, place), field)
    raise InputError(field=field, value=culprit, rule=text[:1].lower() + text[1:], hint="") from None


def _at(value: Any, place: str) -> object:
    """Return the value at a place such as `.rows[1]`, or the innermost container whose place is known.

    msgspec does not name the keys of dicts in a place.
    """
    for step in _STEP.findall(place):
        try:
            value = value[step[1:]] if step[0] == "." else value[int(step[1:-1])]
        except (LookupError, TypeError, ValueError):
            break
    return value


def _of_class(kind: Any, value: Any) -> object:
    """Convert to types that msgspec does not know: paths, pydantic models, types given to `register_type`."""
    if isinstance(kind, type) and issubclass(kind, PurePath):
        if type(value) is not str:
            raise ValueError("Expected a path as text")
        return kind(value)
    if isinstance(kind, type) and (how := registered(kind)) is not None:
        try:
            return how.decode(value)
        except Exception as error:  # decode is the user's code
            raise ValueError(f"Expected a {how.name}: {type(error).__name__}: {shorten(str(error))}") from error
    if hasattr(kind, "__pydantic_validator__") and hasattr(kind, "model_validate"):
        try:
            return kind.model_validate(value)
        except ValueError as error:  # from pydantic or from a validator of the user
            raise ValueError(_first_of(error)) from error
    raise _Unknown


def _first_of(error: Any) -> str:
    """Return pydantic's message about the first refused field: the first line of its text only counts errors."""
    if not hasattr(error, "errors"):
        return f"{type(error).__name__}: {error}"
    first = error.errors(include_url=False)[0]
    where = ".".join(map(str, first["loc"]))
    return f"{where}: {first['msg']}" if where else str(first["msg"])


# ---------------------------------------------------------------- annotations of plain JSON, as JSON


def spec_of(hint: Any) -> Spec | None:
    """Return an annotation as JSON, if it is made of JSON's own types; None for others."""
    if hint in (Any, object):
        return ["any"]
    if hint in (None, type(None)):
        return ["none"]
    if isinstance(hint, type) and _NAMES.get(hint.__name__) is hint:
        return [hint.__name__]
    origin, args = typing.get_origin(hint) or hint, typing.get_args(hint)
    if origin is Literal and all(type(value) in (str, int, type(None)) for value in args):
        return ["literal", *args]
    if origin in (Union, types.UnionType):
        return _with("union", args)
    if origin is list:
        return _with("list", args or (Any,))
    if origin is dict and (not args or args[0] is str):
        return _with("dict", args[1:] or (Any,))
    return None


def _with(kind: str, hints: tuple[Any, ...]) -> Spec | None:
    specs = [spec_of(hint) for hint in hints]
    return None if None in specs else [kind, *specs]


def hint_of(spec: Spec) -> Any:
    """Return the annotation that `spec_of` wrote as this JSON."""
    kind, *rest = spec
    if kind in _NAMES:
        return _NAMES[kind]
    if kind == "literal":
        return Literal[tuple(rest)]
    parts = [hint_of(each) for each in rest]
    if kind == "union":
        return Union[tuple(parts)]  # noqa: UP007 (any number of types)
    if kind == "list":
        return list[parts[0]]  # type: ignore[valid-type]
    if kind == "dict":
        return dict[str, parts[0]]  # type: ignore[valid-type]
    return None if kind == "none" else Any
