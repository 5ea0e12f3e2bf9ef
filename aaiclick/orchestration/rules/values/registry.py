"""The types that users have registered with `register_type`, so that their values can be encoded and decoded."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from aaiclick.errors import InputError
from aaiclick.orchestration.rules.validation import check_name, shorten
from aaiclick.orchestration.rules.values.class_names import NotLoaded, Unreadable, find_class, name_of

T = TypeVar("T")


class Registered(NamedTuple):
    """A registered type: the name stored with its values, and the functions that encode and decode them."""

    name: str
    cls: type
    encode: Callable[[Any], object]
    decode: Callable[[Any], Any]


_by_type: dict[type, Registered] = {}
_by_name: dict[str, Registered] = {}


def register_type(
    cls: type[T], *, name: str | None = None, encode: Callable[[T], object], decode: Callable[[Any], T]
) -> type[T]:
    """Register how values of exactly this type are encoded and decoded, so that they can be arguments and results.

    `encode` may return any value that can itself be encoded, and `decode` restores the original from it. The name is
    stored with each value, so it must not change; the default is `module:qualname`. Register at the top level of the
    module that defines the class, or of one that the tasks import: a worker that meets the name imports the class's
    module.
    """
    if not isinstance(cls, type):
        raise InputError(field="cls", value=shorten(cls), rule="it must be a class", hint="")
    if cls.__module__ == "builtins":
        raise InputError(
            field="cls", value=cls.__name__, rule="this type is built in, or cannot be registered", hint=""
        )
    for field, function in (("encode", encode), ("decode", decode)):
        if not callable(function):
            raise InputError(field=field, value=shorten(function), rule="it must be a function", hint="")
    wanted = f"{cls.__module__}:{cls.__qualname__}" if name is None else check_name(name, "name")
    known = _by_name.get(wanted)
    if known is not None and not _is_same(known.cls, cls):
        rule = f"that is the name of {known.cls.__module__}.{known.cls.__qualname__}"
        raise InputError(field="name", value=wanted, rule=rule, hint="Give another name.")
    if known is not None:
        _by_type.pop(known.cls, None)
    elif cls in _by_type:
        del _by_name[_by_type[cls].name]
    _by_type[cls] = _by_name[wanted] = Registered(wanted, cls, encode, decode)
    return cls


def _is_same(one: type, other: type) -> bool:
    """Return whether the classes are the same, or one is the other's redefinition after a reload of their module."""
    return (one.__module__, one.__qualname__) == (other.__module__, other.__qualname__)


def registered(cls: type) -> Registered | None:
    """Return the registration of exactly this type, or None."""
    return _by_type.get(cls)


def home_of(cls: type) -> str | None:
    """Return the class name whose import registers the type; None if the class cannot be found by a name."""
    try:
        return name_of(cls)
    except Unreadable:
        return None


def find_registered(name: object, home: object, *, importing: bool = True) -> Registered:
    """Return the registration of this name; import the class's module (`home`) first if there is none yet.

    Raise Unreadable if there still is none; without `importing`, NotLoaded if that module is not imported.
    """
    if name not in _by_name and home is not None:
        try:
            find_class(home, importing=importing)
        except Unreadable as error:
            raise _unknown(name, f": {error.rule}") from error
    if name not in _by_name:
        if not importing and str(home).partition(":")[0] not in sys.modules:
            raise NotLoaded(name)
        raise _unknown(name, "")
    return _by_name[str(name)]


def _unknown(name: object, cause: str) -> Unreadable:
    hint = "Call register_type in the module that defines the class, or in a module that the task's module imports."
    return Unreadable(f"no type is registered under the name {shorten(name)} here{cause}", hint)
