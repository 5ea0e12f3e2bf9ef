"""Products of many values: integers exactly or refused on overflow, floats as floats."""

from __future__ import annotations

from collections.abc import Sequence

from aaiclick.data.arithmetic.overflow import BEYOND
from aaiclick.data.sql import quoting
from aaiclick.data.typing.expression_types import FLOAT, Kind, Worded, is_float, is_null, is_whole, like
from aaiclick.data.typing.grammar import Type
from aaiclick.data.typing.integer_types import Whole
from aaiclick.errors import InputError

_BIG = "groupArray(64)(if(abs({0}) > 1, toUInt64(abs({0})), NULL)){over}"
"""The factors of an absolute value above 1, at most 64: a product of 64 of them is beyond 64 bits in any case."""

_HAS_ZERO = "(count(if({0} = 0, 1, NULL)){over} > 0)"
_IS_NEGATIVE = "(count(if({0} < 0, 1, NULL)){over} % 2 = 1)"

UNKNOWN = (
    "throwIf(count({0}){over} >= 0, 'product: the type of the column is not known; cast it, to Float64 for example')"
)


def product(kinds: Sequence[Kind]) -> Worded | None:
    """Return the SQL of a product, which is 1 for no values.

    Raise InputError for types other than integers of up to 64 bits and floats.
    """
    kind = kinds[0]
    if kind is None:  # a term not yet bound to an Object, or verbatim SQL
        return None
    if is_float(kind):
        return Worded("if(count({0}){over} = 0, 1.0, arrayProduct(groupArray(toFloat64({0})){over}))", FLOAT)
    if not is_whole(kind) or Whole(kind).bits > 64:
        hint = "Cast it, to Float64 for example."
        raise InputError(
            field="product", value=str(kind), rule="it needs whole numbers of 64 bits, or floats", hint=hint
        )
    answer = "Int64" if Whole(kind).signed else "UInt64"
    factors = f"if({_HAS_ZERO}, [], {_BIG})"
    told = quoting.text(BEYOND.format("a product"))
    check = f"throwIf(arrayProduct({factors}) > {2.0**65!r}, {told})"
    folded = f"toInt256(arrayFold((m, n) -> m * n, {factors}, toUInt256(1)))"
    signed = f"if({_HAS_ZERO}, 0, if({_IS_NEGATIVE}, -1, 1) * {folded})"
    return Worded(f"accurateCast({signed} * (1 + {check}), '{answer}')", Type(answer))


def product_so_far(kinds: Sequence[Kind]) -> Worded | None:
    """Return the SQL of a running product: None before the first value of a column that may hold None.

    Floats are refused: every row would have to read all rows before it.
    """
    if is_float(kinds[0]):
        hint = "For numbers above 0, write col('a').log().cumsum().over(order_by='t').exp()."
        raise InputError(field="cumprod", value=str(kinds[0]), rule="it needs whole numbers", hint=hint)
    found = product(kinds)
    if found is None:
        return None
    text = f"if(count({{0}}){{over}} = 0, NULL, {found.sql})" if is_null(kinds[0]) else found.sql
    return Worded(text, like(found.kind, *kinds))
