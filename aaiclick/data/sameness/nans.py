"""NaN, alike everywhere: a value of its own where values are matched or sorted; what is computed with it is NaN.

ClickHouse's `max`, `min` and quantiles leave it out, `greatest` and `least` give one or the other by their order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from aaiclick.data.typing.expression_types import FLOAT, Kind, Typing, Worded, are_long, is_float, like, maybe
from aaiclick.data.typing.grammar import Type

SINGLE, BYTE = Type("Float32"), Type("Int8")


def poisoned(words: str, kind: Kind = None) -> Typing:
    """A total that is NaN where one of the values is; of other types as it is. Its own type is the values', or this."""

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
    """One of the arguments by its size: NaN where one of them is. What is None is left out, as the words say."""

    def typing(kinds: Sequence[Kind]) -> Worded:
        text = words.replace("{args}", "".join(f", {{{number}}}" for number in range(1, len(kinds))))
        if are_long(kinds):  # of a LowCardinality, which has no type of its own here, ClickHouse takes -1 for 2**64 - 1
            for number, kind in enumerate(kinds):
                text = text.replace(f"{{{number}}}", f"CAST({{{number}}}, '{kind}')")
        floats = [number for number, kind in enumerate(kinds) if is_float(kind)]
        if floats:
            found = " OR ".join(f"ifNull(isNaN({{{number}}}), 0)" for number in floats)
            text = f"if({found}, {_nan([kind_of(kinds)])}, {text})"
        return Worded(text, kind_of(kinds))

    return typing


def _nan(kinds: Sequence[Kind]) -> str:
    """NaN as wide as values of these types."""
    return "toFloat32(nan)" if kinds and all(kind and kind.bare == SINGLE for kind in kinds) else "nan"


def sign(kinds: Sequence[Kind]) -> Worded:
    """`sign`: of floats a float, since NaN has none."""
    if is_float(kinds[0]):
        return Worded("if(isNaN({0}), nan, sign({0}))", like(FLOAT, *kinds))
    return Worded("sign({0})", None if None in kinds else like(BYTE, *kinds))
