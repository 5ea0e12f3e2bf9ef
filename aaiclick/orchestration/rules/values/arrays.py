"""Numbers and arrays of numpy, exactly: dtype, shape, order and every byte. numpy is used only where it is loaded."""

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
    """Whether it is an array or a scalar of numpy itself; a subclass of an array is something else."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and (type(value) is numpy.ndarray or isinstance(value, numpy.generic))


def is_row(value: Any) -> TypeGuard[Iterable[object]]:
    """Whether it is an array of numpy with something to go through."""
    return is_array(value) and value.ndim > 0


def number_in(value: Any) -> object:
    """The plain value of a number of numpy, or the text of one that Python has none for; None for anything else."""
    if not is_array(value) or value.ndim > 0 or value.dtype.kind in "VO":
        return None
    item = str(value) if value.dtype.kind in "mM" else value.item()
    return str(item) if is_array(item) and not isinstance(item, float | int | str | bytes) else item


def lower_array(walk: Walk, value: Any) -> object:
    """The bytes of an array as text, a number as it is; marked with the dtype."""
    import numpy  # here: it is loaded, since the value is of it

    form = _form(numpy, value.dtype)
    if isinstance(value, numpy.generic):
        return _lower_scalar(walk, value, form)
    order = "F" if value.flags.f_contiguous and not value.flags.c_contiguous else "C"
    walk.spend(4 * value.nbytes // 3)
    walk.note("array", form, list(value.shape), order)
    return base64.b64encode(value.tobytes(order=order)).decode()


def _form(numpy: Any, dtype: Any) -> object:
    """What the dtype is written as: a text, or a list of fields."""
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
    if dtype.kind in "SU":  # its bytes would end at the last that is not NUL
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
    """Fields as numpy writes them: JSON has made lists of its tuples."""
    if not isinstance(form, list):
        return form
    return [tuple(_part(part, place) for place, part in enumerate(field)) for field in form]


def _part(part: object, place: int) -> object:
    if place == 1:
        return _tuples(part)
    return tuple(part) if isinstance(part, list) else part


def build_array(text: str, form: object, shape: list[int], order: str) -> object:
    """The array, with memory of its own."""
    import numpy  # here, to keep start-up light

    data, dtype = bytearray(base64.b64decode(text, validate=True)), _known(numpy, form)
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != len(data):
        raise Unreadable(f"its {len(data)} bytes are no array of {dtype} with the shape {shape}")
    made: Any = numpy.ndarray(tuple(shape), dtype=dtype, buffer=data, order=_order(order))
    return made.copy(order="K")


def _order(order: str) -> Any:
    return "F" if order == "F" else "C"


def build_scalar(lowered: Any, form: object) -> object:
    """The number, text or time."""
    import numpy  # here, to keep start-up light

    dtype = _known(numpy, form)
    if isinstance(lowered, list):
        return dtype.type(lowered[0])
    return numpy.frombuffer(base64.b64decode(lowered, validate=True), dtype=dtype)[0]


def _known(numpy: Any, form: object) -> Any:
    """The dtype; one of Python objects is never made, whatever a stored text says."""
    dtype = _dtype(numpy, form)
    if dtype.hasobject or dtype.kind not in _KINDS:
        raise Unreadable(f"an array of {dtype} has no bytes of its own")
    return dtype
