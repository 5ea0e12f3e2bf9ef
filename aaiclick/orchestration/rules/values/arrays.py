"""Exact encoding of numpy arrays and scalars: dtype, shape, memory order and every byte.

Encoding does not import numpy: a value can only be of numpy if numpy is loaded.
"""

from __future__ import annotations

import base64
import math
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeGuard

from aaiclick.orchestration.rules.values.class_names import Unreadable

if TYPE_CHECKING:
    from aaiclick.orchestration.rules.values.walk import Walk

_KINDS = frozenset("biufcmMSUV")
_NUMBER_BYTES_MAX = 8


def is_array(value: object) -> bool:
    """Return whether the value is a numpy scalar or exactly an ndarray; instances of its subclasses do not count."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and (type(value) is numpy.ndarray or isinstance(value, numpy.generic))


def is_row(value: Any) -> TypeGuard[Iterable[object]]:
    """Return whether the value is a numpy array that can be iterated: not a scalar, not of zero dimensions."""
    return is_array(value) and value.ndim > 0


def number_in(value: Any) -> object:
    """Return the Python value of a numpy scalar, or its text if Python has no such type; None for anything else."""
    if not is_array(value) or value.ndim > 0 or value.dtype.kind in "VO":
        return None
    item = str(value) if value.dtype.kind in "mM" else value.item()
    return str(item) if is_array(item) and not isinstance(item, float | int | str | bytes) else item


def lower_array(walk: Walk, value: Any) -> object:
    """Lower an array to its bytes as text, a scalar to a number where that is exact; marked with the dtype."""
    import numpy  # already loaded, as the value is of numpy

    form = _form(numpy, value.dtype)
    if isinstance(value, numpy.generic):
        return _lower_scalar(walk, value, form)
    order = "F" if value.flags.f_contiguous and not value.flags.c_contiguous else "C"
    walk.spend(4 * value.nbytes // 3)
    walk.note("array", form, list(value.shape), order)
    return base64.b64encode(value.tobytes(order=order)).decode()


def _form(numpy: Any, dtype: Any) -> object:
    """Return the stored form of a dtype: a text, or a list of fields; raise Unreadable if it cannot be restored."""
    if dtype.hasobject or dtype.kind not in _KINDS:
        rule = f"an array of {dtype} has no bytes of its own"
        raise Unreadable(rule, "Pass a list, or an array of numbers, texts or times.")
    try:
        form: object = numpy.lib.format.dtype_to_descr(dtype)
    except ValueError as error:
        raise Unreadable(f"the dtype {dtype} cannot be written", "Use one whose fields do not overlap.") from error
    if isinstance(form, str) and numpy.dtype(form).char != dtype.char:
        form = dtype.byteorder.replace("=", "").replace("|", "") + dtype.char
    if _dtype(numpy, form) != dtype:
        raise Unreadable(f"the dtype {dtype} cannot be written", "Use one whose fields do not overlap.")
    return form


def _lower_scalar(walk: Walk, value: Any, form: object) -> object:
    dtype = value.dtype
    if dtype.kind in "SU":  # numpy drops trailing NULs of such scalars
        plain = b"" + value if dtype.kind == "S" else str.__add__("", value)
        lowered: object = walk.items([plain])
    elif dtype.kind in "biuf" and dtype.itemsize <= _NUMBER_BYTES_MAX and value == value:
        lowered = walk.items([value.item()])
    else:
        lowered = base64.b64encode(value.tobytes()).decode()
        walk.spend(len(str(lowered)))
    walk.note("scalar", form)
    return lowered


def _dtype(numpy: Any, form: object) -> Any:
    return numpy.lib.format.descr_to_dtype(_tuples(form))


def _tuples(form: object) -> object:
    """Turn the lists of a dtype's fields back into numpy's tuples, which JSON cannot represent."""
    if not isinstance(form, list):
        return form
    return [tuple(_part(part, place) for place, part in enumerate(field)) for field in form]


def _part(part: object, place: int) -> object:
    if place == 1:
        return _tuples(part)
    return tuple(part) if isinstance(part, list) else part


def build_array(text: str, form: object, shape: list[int], order: str) -> object:
    """Return the array, with memory of its own."""
    import numpy  # here, to keep start-up light

    data, dtype = bytearray(base64.b64decode(text, validate=True)), _known(numpy, form)
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != len(data):
        raise Unreadable(f"its {len(data)} bytes do not form an array of {dtype} with the shape {shape}")
    made: Any = numpy.ndarray(tuple(shape), dtype=dtype, buffer=data, order=_order(order))
    return made.copy(order="K")


def _order(order: str) -> Any:
    return "F" if order == "F" else "C"


def build_scalar(lowered: Any, form: object) -> object:
    """Return the numpy scalar."""
    import numpy  # here, to keep start-up light

    dtype = _known(numpy, form)
    if isinstance(lowered, list):
        return dtype.type(lowered[0])
    return numpy.frombuffer(base64.b64decode(lowered, validate=True), dtype=dtype)[0]


def _known(numpy: Any, form: object) -> Any:
    """Return the dtype; raise Unreadable for dtypes of Python objects, which a forged text might name."""
    dtype = _dtype(numpy, form)
    if dtype.hasobject or dtype.kind not in _KINDS:
        raise Unreadable(f"an array of {dtype} has no bytes of its own")
    return dtype
