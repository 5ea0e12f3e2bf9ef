"""SQL that treats NaN alike everywhere: NaN equals NaN in keys and sorting, and a result computed with NaN is NaN.

ClickHouse's own `max`, `min` and quantiles skip NaN; `greatest` and `least` depend on the order of their arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from aaiclick.data.typing.expression_types import FLOAT, Kind, Typing, Worded, are_long, is_float, like, maybe
from aaiclick.data.typing.grammar import Type

SINGLE, BYTE = Type("Float32"), Type("Int8")


def poisoned(words: str, kind: Kind = None) -> Typing:
    """Return the typing of a total that is NaN if one of the values is; other types use the template unchanged.

    The result has the type of the values, or `kind` if that is given and the values are floats.
    """

    def typing(kinds: Sequence[Kind]) -> Worded:
        text = words if "{over}" in words else f"{words}{{over}}"
        if is_float(kinds[0]):
            text = f"if(ifNull(max(isNaN({{0}})){{over}}, 0), {_nan(kinds[:1] if kind is None else ())}, {text})"
        else:
            text = words
        found = maybe(kinds[0]) if kind is None else kind if is_float(kinds[0]) else None
        return Worded(text, found)

    return typing


def chosen(words: str, kind_of: Callable[[Sequence[Kind]], Kind]) -> Typing:
    """Return the typing of `greatest` or `least`: NaN if one argument is NaN. The template itself leaves out None."""

    def typing(kinds: Sequence[Kind]) -> Worded:
        text = words.replace("{args}", "".join(f", {{{number}}}" for number in range(1, len(kinds))))
        if are_long(kinds):  # in a LowCardinality (no type of its own here), ClickHouse takes -1 for 2**64 - 1
            for number, kind in enumerate(kinds):
                text = text.replace(f"{{{number}}}", f"CAST({{{number}}}, '{kind}')")
        floats = [number for number, kind in enumerate(kinds) if is_float(kind)]
        if floats:
            found = " OR ".join(f"ifNull(isNaN({{{number}}}), 0)" for number in floats)
            text = f"if({found}, {_nan([kind_of(kinds)])}, {text})"
        return Worded(text, kind_of(kinds))

    return typing


def _nan(kinds: Sequence[Kind]) -> str:
    """Return NaN as Float32 if all these types are Float32, else as Float64."""
    return "toFloat32(nan)" if kinds and all(kind and kind.bare == SINGLE for kind in kinds) else "nan"


def sign(kinds: Sequence[Kind]) -> Worded:
    """Return the SQL of `sign`; for floats the result is a float, since the sign of NaN is NaN."""
    if is_float(kinds[0]):
        return Worded("if(isNaN({0}), nan, sign({0}))", like(FLOAT, *kinds))
    return Worded("sign({0})", None if None in kinds else like(BYTE, *kinds))
