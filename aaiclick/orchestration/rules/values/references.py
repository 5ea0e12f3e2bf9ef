"""Reference dicts, `{"object_type": …}`: they stand for Objects, Views or values in top-level kwargs of Python code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, TypeGuard

from aaiclick.errors import InputError
from aaiclick.orchestration.rules.naming.untrusted_entrypoints import are_from_outside
from aaiclick.orchestration.rules.validation import ID_MAX, check_id, check_name, is_storable, shown


def is_reference(value: object) -> TypeGuard[dict[str, Any]]:
    """Return whether a value has the form of a reference dict."""
    return type(value) is dict and type(kind := value.get("object_type")) is str and kind in _FIELDS


def check_reference(given: dict[str, Any], path: str) -> dict[str, Any]:
    """Return the reference with all fields checked; the older field name `table_id` becomes `table`.

    Raise InputError for malformed ones, and for references to Objects and Views in jobs that came from outside.
    """
    kind = given["object_type"]
    fields = {name: value for name, value in given.items() if name != "object_type"}
    needed = "value"
    if kind != "pyobj":
        if are_from_outside():  # a View's conditions are SQL, and the dict may have come with the arguments
            _refuse(path, given, f"in a job that came from outside, a dict does not stand for the {kind} itself")
        needed = "table"
        fields = {name: value for name, value in fields.items() if value is not None}
        if "table_id" in fields and "table" not in fields:
            fields = {"table": fields.pop("table_id"), **fields}
    if unknown := [name for name in fields if name not in _FIELDS[kind]]:
        _refuse(
            path, unknown[0], f"a reference to {kind} has no such field; the fields are: {', '.join(_FIELDS[kind])}"
        )
    if needed not in fields:
        _refuse(path, given, f"it has no {needed}")
    return {
        "object_type": kind,
        **{name: _FIELDS[kind][name](value, f"{path}.{name}") for name, value in fields.items()},
    }


def _value(value: object, _field: str) -> object:
    return value


def _count(value: object, field: str) -> int:
    if type(value) is not int or not 0 <= value <= ID_MAX:
        _refuse(field, value, "it must be a whole number from 0")
    return value


def _sql(value: object, field: str) -> str:
    if type(value) is not str or not value.strip() or not is_storable(value):
        _refuse(field, value, "it must be a text without NUL and lone surrogates")
    return value


def _shape(value: object, field: str) -> str:
    if value != "table":
        _refuse(field, value, 'it can only be "table", where a field alone would be a list')
    return "table"


def _columns(value: object, field: str) -> list[str]:
    if not isinstance(value, list | tuple) or not value:
        _refuse(field, value, "it must be a list of column names")
    return [_sql(name, f"{field}[{index}]") for index, name in enumerate(value)]


def _refuse(field: str, value: object, rule: str) -> NoReturn:
    hint = "To pass such a dict as data, wrap it: {'object_type': 'pyobj', 'value': …}."
    raise InputError(field=field, value=shown(value, field), rule=rule, hint=hint)


_Check = Callable[[object, str], object]
_OBJECT: dict[str, _Check] = {"table": check_name, "job_id": check_id}
_FIELDS: dict[str, dict[str, _Check]] = {
    "pyobj": {"value": _value},
    "object": _OBJECT,
    "view": _OBJECT
    | {
        "where": _sql,
        "limit": _count,
        "offset": _count,
        "order_by": _sql,
        "selected_fields": _columns,
        "shape": _shape,
    },
}
