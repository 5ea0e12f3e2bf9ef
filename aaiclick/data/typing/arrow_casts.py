"""Conversion of Arrow columns of any origin to a given ClickHouse type: exact or refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aaiclick.data.typing.arrow_columns import NO_NULL, build, narrowed
from aaiclick.data.typing.grammar import Type, nullable
from aaiclick.data.typing.inference import Unfit, outer
from aaiclick.data.typing.time_ranges import fit_days, fit_moments
from aaiclick.data.typing.types import arrow_of, is_arrow_list, kind_of_arrow

if TYPE_CHECKING:
    import pyarrow as pa

BYTES = {"FixedString", "IPv6", "Int128", "UInt128", "Int256", "UInt256"}
"""Types that ClickHouse sends as fixed-length bytes, and takes back unchanged."""


def kind_of_data(array: pa.ChunkedArray) -> Type:
    """Return the type that holds the values of an Arrow column; Nullable only if there are nulls."""
    import pyarrow as pa  # here, to keep start-up light

    if pa.types.is_dictionary(array.type):  # the dictionary itself may hold a null
        return kind_of_arrow(array.type, decoded(array).null_count > 0)
    array = decoded(array)
    if is_arrow_list(array.type):
        inner = pa.chunked_array([chunk.flatten() for chunk in array.chunks], array.type.value_type)
        return Type("Array", (kind_of_data(inner),))
    if pa.types.is_struct(array.type) and array.type.num_fields:
        kind = kind_of_arrow(array.type, False)
        parts = tuple(kind_of_data(part) for part in array.drop_null().flatten())
        found = Type("Tuple", parts, kind.labels)
        return nullable(found) if array.null_count else found
    if pa.types.is_map(array.type):
        chunks = [chunk.items for chunk in array.chunks]
        items = pa.chunked_array(chunks, array.type.item_type)
        return Type("Map", (kind_of_arrow(array.type.key_type, False), kind_of_data(items)))
    return kind_of_arrow(array.type, array.null_count > 0)


def fit(array: pa.ChunkedArray, kind: Type) -> pa.ChunkedArray:
    """Return the column with the Arrow type that is sent for `kind`; raise Unfit for a value that does not fit."""
    import pyarrow as pa  # here, to keep start-up light

    array = decoded(array)
    chunks, row = [], 0
    for chunk in array.chunks:
        try:
            chunks.append(_fit_chunk(chunk, kind))
        except Unfit as unfit:
            raise Unfit(unfit.row + row, unfit.value, unfit.rule, unfit.hint) from None
        row += len(chunk)
    if len({chunk.type for chunk in chunks}) > 1:  # some chunks were built from Python values
        chunks = [chunk.cast(chunks[0].type) for chunk in chunks]
    return pa.chunked_array(chunks) if chunks else pa.chunked_array([build([], kind)])


def decoded(array: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the column without dictionary and run-end encoding."""
    import pyarrow as pa  # here, to keep start-up light
    import pyarrow.compute as pc  # here, to keep start-up light

    if pa.types.is_dictionary(array.type):
        values = [_looked_up(chunk) for chunk in array.chunks]
        return decoded(pa.chunked_array(values, None if values else array.type.value_type))
    if pa.types.is_run_end_encoded(array.type):
        return decoded(pa.chunked_array([pc.run_end_decode(chunk) for chunk in array.chunks], array.type.value_type))
    return array


def _looked_up(array: pa.DictionaryArray) -> pa.Array:
    """Return the values of a dictionary column; Arrow cannot cast every value type, views among them."""
    values = array.dictionary
    given = str(values.type)
    return (values.cast(given.replace("_view", "")) if given.endswith("_view") else values).take(array.indices)


def _fit_chunk(array: pa.Array, kind: Type) -> pa.Array:
    import pyarrow as pa  # here, to keep start-up light
    import pyarrow.compute as pc  # here, to keep start-up light

    if array.null_count and not kind.is_nullable:
        row = pc.index(array.is_null(), True).as_py()
        raise Unfit(row, None, NO_NULL, "Make the type Nullable(…).")
    try:
        fitted = _cast(array, kind.bare)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        fitted = None
    # building from Python values is slower, but exact, or it names the row that does not fit
    return build(array.to_pylist(), kind) if fitted is None else fitted


def _cast(array: pa.Array, kind: Type) -> pa.Array | None:
    """Convert the column with one of Arrow's exact casts; None if there is none for these types."""
    import pyarrow as pa  # here, to keep start-up light

    given, target, name = array.type, arrow_of(kind), kind.name
    if name in ("Array", "Map", "Tuple"):
        return _cast_nested(array, kind)
    if name == "String":
        return _cast_texts(array)
    if name in ("Date", "Date32"):
        return fit_days(array, kind) if pa.types.is_date(given) else None
    if name in ("DateTime", "DateTime64"):
        if name == "DateTime" and given == pa.uint32():  # as ClickHouse sends it
            array = array.cast(pa.int64()).cast(target)
        return fit_moments(array, kind) if pa.types.is_timestamp(array.type) else None
    if name == "Float32" and given == pa.float64():
        return narrowed(array, target)
    if name in BYTES or name == "IPv4":
        return array if given == target else None
    numbers = pa.types.is_integer(given) or pa.types.is_floating(given)
    exact = (name.startswith(("Int", "UInt")) and pa.types.is_integer(given)) or (name.startswith("Float") and numbers)
    exact = exact or (name == "Decimal" and pa.types.is_decimal(given)) or (name == "Bool" and given == target)
    return array.cast(target) if exact else None


def _cast_texts(array: pa.Array) -> pa.Array | None:
    import pyarrow as pa  # here, to keep start-up light

    given = str(array.type)
    if given in ("string", "large_string"):
        return array
    if given == "string_view":
        return array.cast(pa.large_string())
    if "binary" not in given:
        return None
    array = array if given in ("binary", "large_binary") else array.cast(pa.large_binary())
    array.cast(pa.large_string())  # raises for invalid UTF-8; building from Python values then names the row
    return array


def _cast_nested(array: pa.Array, kind: Type) -> pa.Array | None:
    import pyarrow as pa  # here, to keep start-up light

    if kind.name == "Array" and is_arrow_list(array.type):
        return _cast_lists(array, kind)
    if kind.name == "Map" and pa.types.is_map(array.type):
        return _cast_maps(array, kind)
    if kind.name == "Tuple" and pa.types.is_struct(array.type):
        return _cast_structs(array, kind)
    return None


def _cast_lists(array: pa.Array, kind: Type) -> pa.Array:
    import pyarrow as pa  # here, to keep start-up light
    import pyarrow.compute as pc  # here, to keep start-up light

    ends = pc.cumulative_sum(pc.list_value_length(array).cast(pa.int64()))
    offsets = pa.concat_arrays([pa.array([0], pa.int64()), ends])
    return pa.LargeListArray.from_arrays(offsets, _fit_inner(array.flatten(), kind.parts[0], offsets))


def _cast_maps(array: pa.Array, kind: Type) -> pa.Array:
    import pyarrow as pa  # here, to keep start-up light

    # a slice would bring the keys and items of its whole array
    compact = array.take(pa.array(range(len(array)), pa.int64()))
    offsets = compact.offsets
    keys = _fit_inner(compact.keys, kind.parts[0], offsets)
    return pa.MapArray.from_arrays(offsets, keys, _fit_inner(compact.items, kind.parts[1], offsets))


def _cast_structs(array: pa.Array, kind: Type) -> pa.Array | None:
    import pyarrow as pa  # here, to keep start-up light

    given = [field.name for field in array.type]
    if array.null_count:
        return None
    labels = list(kind.labels) or given
    if len(given) != len(kind.parts) or sorted(given) != sorted(labels) or len(set(given)) != len(given):
        return None
    found = dict(zip(given, array.flatten(), strict=True))
    parts = [_fit_inner(found[label], part) for label, part in zip(labels, kind.parts, strict=True)]
    names = list(kind.labels) or [str(number) for number in range(1, len(parts) + 1)]
    return pa.StructArray.from_arrays(parts, names)


def _fit_inner(array: pa.Array, kind: Type, offsets: pa.Array | None = None) -> pa.Array:
    import pyarrow as pa  # here, to keep start-up light

    try:
        return pa.concat_arrays(fit(pa.chunked_array([array]), kind).chunks)
    except Unfit as unfit:
        raise (outer(unfit, offsets.to_pylist()) if offsets is not None else unfit) from None
