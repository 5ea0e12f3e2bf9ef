"""Exact encoding of enums, dataclasses, named tuples, msgspec Structs and pydantic models.

A value is lowered to a dict of its fields, or an enum member to its name, and marked with its class. It is restored
without validation and without computed or default values, so that it equals the original. A Struct's `__post_init__`
does run, and its fields are set again afterwards.
"""

from __future__ import annotations

import dataclasses
import functools
import sys
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum, Flag
from typing import TYPE_CHECKING, Any

from aaiclick.orchestration.rules.failed import Failed
from aaiclick.orchestration.rules.validation import is_storable, shorten
from aaiclick.orchestration.rules.values.class_names import Unreadable, find_class, name_of

if TYPE_CHECKING:
    from aaiclick.orchestration.rules.values.walk import Walk

_AGAIN = "Rerun the task that made the value, or restore the field."
_REPR_LENGTH_MAX = 500
_HEAP_TYPE = 1 << 9  # of a class made by Python code


def lower_class(walk: Walk, value: Any) -> object:
    """Lower a value of a class and mark it with the class.

    Raise LookupError if the kind of class is not supported, Unreadable if the class cannot be found by its name.
    """
    cls = type(value)
    for is_kind, lower in _LOWER:
        if is_kind(cls):
            return lower(walk, value, name_of(cls))
    raise LookupError(cls)


# ---------------------------------------------------------------- for people


def fields_of(value: Any) -> dict[str, object] | None:
    """Return the fields of a dataclass, Struct or pydantic model by name, for display; None for other values."""
    cls = type(value)
    if _is_dataclass(cls) or isinstance(value, Failed):
        return {each.name: getattr(value, each.name, None) for each in dataclasses.fields(value) if each.repr}
    if _is_struct(cls):
        unset = _loaded("msgspec", "UNSET")
        found = {each: getattr(value, each) for each in cls.__struct_fields__}
        return {each: item for each, item in found.items() if item is not unset}
    if _is_model(cls):
        return {each: value.__dict__.get(each) for each in cls.__pydantic_fields__} | (value.__pydantic_extra__ or {})
    return None


def unsealed(kind: str, payload: Sequence[Any], lowered: Any) -> object:
    """Return the stored form of a value as a value of its class would be displayed; its class need not be loaded."""
    if kind == "enum":
        return payload[1] if len(payload) > 1 else lowered
    if kind not in ("dataclass", "struct", "model"):
        return lowered
    facts: Mapping[str, Any] = payload[1] if len(payload) > 1 else {}
    hidden = {*facts.get("extra", ()), *facts.get("private", ())} - {*facts.get("more", ())}
    return {each: item for each, item in lowered.items() if each not in hidden}


# ---------------------------------------------------------------- enums


def _is_enum(cls: type) -> bool:
    return issubclass(cls, Enum)


def _lower_enum(walk: Walk, value: Enum, name: str) -> object:
    if isinstance(value, Flag):
        bits = walk.lower(value.value)
        walk.note("flag", name, [member.name for member in value])
        return bits
    if type(value).__members__.get(value.name) is not value or not is_storable(value.name):
        raise Unreadable(f"its type {type(value).__name__} has no such member", "Pass its value.")
    walk.spend(len(value.name))
    walk.note("enum", name, *_fingerprint(value.value))
    return value.name


def _fingerprint(value: object) -> list[object]:
    """Return what shows whether a member's value has changed: the value, or its repr, or nothing if that varies."""
    if value is None or type(value) in (bool, int, str):
        if type(value) is not str or is_storable(value):
            return [value] if type(value) is not int or abs(value) < 2**63 else [hex(value)]
        return []
    try:
        text = repr(value)
    except Exception:  # repr() is the user's code
        return []
    return [text] if len(text) <= _REPR_LENGTH_MAX and is_storable(text) and " at 0x" not in text else []


def build_enum(name: str, cls_name: str, *fingerprint: object) -> object:
    """Return the member of that name; raise Unreadable if it is gone or its value has changed."""
    cls = _found(cls_name, _is_enum, "enum")
    member = cls.__members__.get(name)
    if member is None:
        raise Unreadable(f"{cls_name} no longer has a member {shorten(name)}", "Restore the member under that name.")
    now = _fingerprint(member.value)
    if fingerprint and (now != list(fingerprint) or type(now[0]) is not type(fingerprint[0])):
        rule = f"{cls_name}.{name} is {shorten(member.value)} now, and was {shorten(fingerprint[0])}"
        raise Unreadable(rule, "Rerun the task that made the value.")
    return member


def build_flag(value: int, cls_name: str, names: Sequence[str]) -> object:
    """Return the combination of members; raise Unreadable if the bits now belong to other members."""
    cls = _found(cls_name, lambda cls: issubclass(cls, Flag), "flag")
    try:
        found = cls(value)
    except ValueError as error:
        raise Unreadable(f"{cls_name} no longer has all of {', '.join(names)}", "Restore them.") from error
    if [member.name for member in found] != list(names):
        rule = f"{cls_name} has other members for {value} now than {', '.join(names)}"
        raise Unreadable(rule, "Rerun the task that made the value.")
    return found


# ---------------------------------------------------------------- what has fields


def _lower_fields(
    walk: Walk, kind: str, name: str, declared: Sequence[str], present: Mapping[str, object], **facts: object
) -> dict[str, object]:
    """Lower fields and other attributes as one dict; the mark lists the non-fields and the fields without a value."""
    known = frozenset(declared)
    if extra := [each for each in present if each not in known]:
        facts["extra"] = extra
    if unset := [each for each in declared if each not in present]:
        facts["unset"] = unset
    lowered = walk.fields(present)
    walk.note(kind, name, *([facts] if facts else []))
    return lowered


def _check_fields(name: str, declared: Sequence[str], stored: Mapping[str, object], facts: Mapping[str, Any]) -> None:
    """Raise Unreadable if the class's fields are no longer those of the stored value."""
    expected = [each for each in declared if each not in facts.get("unset", ())]
    extra = facts.get("extra", ())
    for field in stored:
        if field not in expected and field not in extra:
            raise Unreadable(f"{name} no longer has a field {field}", _AGAIN)
    for field in expected:
        if field not in stored or field in extra:
            raise Unreadable(f"{name} now has a field {field}, which the stored value lacks", _AGAIN)


def _attributes(value: object) -> Iterator[tuple[str, object]]:
    """Yield the attributes of an instance, from its slots and its dict, without values of cached properties."""
    cls = type(value)
    for base in reversed(cls.__mro__):
        slots = base.__dict__.get("__slots__", ())
        for slot in (slots,) if isinstance(slots, str) else slots:
            hidden = f"_{base.__name__.lstrip('_')}{slot}"
            name = hidden if slot.startswith("__") and not slot.endswith("__") else slot
            if name not in ("__dict__", "__weakref__") and hasattr(value, name):
                yield name, getattr(value, name)
    for name, item in getattr(value, "__dict__", {}).items():
        if name != "__orig_class__" and not isinstance(_class_attribute(cls, name), functools.cached_property):
            yield name, item


def _class_attribute(cls: type, name: str) -> object:
    return next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), None)


# ---------------------------------------------------------------- dataclasses


def _is_dataclass(cls: type) -> bool:
    """Return whether this is a user's dataclass without built-in bases: a subclass of list holds more than fields."""
    if cls is Failed:  # a body may return or pass on a Failed that it was given
        return True
    if not dataclasses.is_dataclass(cls) or cls.__module__.startswith("aaiclick."):
        return False
    return all(base is object or base.__flags__ & _HEAP_TYPE for base in cls.__mro__)


def _field_names(cls: Any) -> list[str]:
    return [field.name for field in dataclasses.fields(cls)]


def _lower_dataclass(walk: Walk, value: Any, name: str) -> object:
    present = dict(_attributes(value))
    declared = _field_names(value)
    ordered = {each: present.pop(each) for each in declared if each in present}
    return _lower_fields(walk, "dataclass", name, declared, {**ordered, **present})


def build_dataclass(stored: dict[str, object], name: str, facts: Mapping[str, Any] | None = None) -> object:
    """Return an instance with these attributes; neither `__init__` nor `__post_init__` is called."""
    cls = _found(name, _is_dataclass, "dataclass")
    _check_fields(name, _field_names(cls), stored, facts or {})
    made = object.__new__(cls)
    for field, value in stored.items():
        object.__setattr__(made, field, value)
    return made


# ---------------------------------------------------------------- named tuples


def _is_named_tuple(cls: type) -> bool:
    fields = getattr(cls, "_fields", None)
    return issubclass(cls, tuple) and type(fields) is tuple and all(type(each) is str for each in fields)


def _lower_named_tuple(walk: Walk, value: Any, name: str) -> object:
    if getattr(value, "__dict__", None) or len(value) != len(value._fields):
        raise Unreadable(f"its type {type(value).__name__} has attributes besides its fields", "Pass a plain tuple.")
    lowered = walk.items(list(value))
    walk.note("namedtuple", name, list(value._fields))
    return lowered


def build_named_tuple(items: list[object], name: str, fields: list[str]) -> object:
    """Return the named tuple; raise Unreadable if its class has other fields now."""
    cls: Any = _found(name, _is_named_tuple, "named tuple")
    if list(cls._fields) != fields or len(items) != len(fields):
        gone = [each for each in fields if each not in cls._fields] or list(cls._fields)
        raise Unreadable(f"{name} has other fields now: {', '.join(gone)}", _AGAIN)
    return tuple.__new__(cls, items)


# ---------------------------------------------------------------- models of msgspec and pydantic, if they are loaded


def _loaded(module: str, attribute: str) -> Any:
    return getattr(sys.modules.get(module), attribute, None)


def _is_struct(cls: type) -> bool:
    struct = _loaded("msgspec", "Struct")
    return struct is not None and issubclass(cls, struct)


def _lower_struct(walk: Walk, value: Any, name: str) -> object:
    unset, fields = _loaded("msgspec", "UNSET"), type(value).__struct_fields__
    present = {each: getattr(value, each) for each in fields}
    present = {each: item for each, item in present.items() if item is not unset}
    return _lower_fields(walk, "struct", name, fields, {**present, **getattr(value, "__dict__", {})})


def build_struct(stored: dict[str, object], name: str, facts: Mapping[str, Any] | None = None) -> object:
    """Return the Struct with these fields; they are set again after `__post_init__`, which may change them."""
    cls: Any = _found(name, _is_struct, "Struct")
    facts = facts or {}
    _check_fields(name, cls.__struct_fields__, stored, facts)
    from msgspec import UNSET  # here, to keep start-up light
    from msgspec.structs import force_setattr

    values = {each: stored.get(each, UNSET) for each in cls.__struct_fields__}
    made = cls(**values)
    for field, value in values.items():
        force_setattr(made, field, value)
    for field in facts.get("extra", ()):
        made.__dict__[field] = stored[field]
    return made


def _is_model(cls: type) -> bool:
    model = _loaded("pydantic", "BaseModel")
    return model is not None and issubclass(cls, model) and hasattr(cls, "__pydantic_fields__")


def _lower_model(walk: Walk, value: Any, name: str) -> object:
    declared = list(type(value).__pydantic_fields__)
    present = {each: item for each, item in value.__dict__.items() if each in declared}
    facts: dict[str, object] = {"set": sorted(value.__pydantic_fields_set__)}
    for fact, part in (("more", value.__pydantic_extra__), ("private", value.__pydantic_private__)):
        if part is not None:
            facts[fact] = list(part)
            present |= part
    return _lower_fields(walk, "model", name, declared, present, **facts)


def build_model(stored: dict[str, object], name: str, facts: Mapping[str, Any]) -> object:
    """Return the model with these fields; it is not validated again."""
    cls: Any = _found(name, _is_model, "pydantic model")
    _check_fields(name, list(cls.__pydantic_fields__), stored, facts)
    parts = {fact: {each: stored[each] for each in facts[fact]} for fact in ("more", "private") if fact in facts}
    made = cls.__new__(cls)
    fields = {each: item for each, item in stored.items() if each in cls.__pydantic_fields__}
    object.__setattr__(made, "__dict__", fields)
    object.__setattr__(made, "__pydantic_fields_set__", set(facts["set"]))
    for slot, part in (("__pydantic_extra__", "more"), ("__pydantic_private__", "private")):
        if getattr(made, slot, parts) is not parts.get(part):  # a RootModel has them with its class
            object.__setattr__(made, slot, parts.get(part))
    return made


def _found(name: str, is_kind: Any, kind: str) -> Any:
    """Return the class; raise Unreadable if it is not of that kind, so that no other class is ever instantiated."""
    cls = find_class(name)
    if not is_kind(cls):
        raise Unreadable(f"{name} is not a {kind} here", "Rerun the task that made the value.")
    return cls


_LOWER = (
    (_is_enum, _lower_enum),
    (_is_dataclass, _lower_dataclass),
    (_is_named_tuple, _lower_named_tuple),
    (_is_struct, _lower_struct),
    (_is_model, _lower_model),
)
