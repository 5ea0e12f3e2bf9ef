"""SQL of exact comparisons of numbers of different types.

In ClickHouse, comparing decimals wraps around or fails if both do not fit one scale, and no whole number of 256 bits
is less than infinity.
"""

from __future__ import annotations

from collections.abc import Sequence

from aaiclick.data.typing.expression_types import Kind, Typing, Worded, is_decimal, is_float, is_whole
from aaiclick.data.typing.grammar import INTEGERS, PRECISION_MAX
from aaiclick.data.typing.integer_types import bits_of, limit_of, null_or

DIGITS = {8: 3, 16: 5, 32: 10, 64: 20, 128: 39, 256: 78}
"""The greatest number of digits of a whole number, by its bits."""


def compared(sign: str, limits: Sequence[int | None] = (None, None)) -> Typing:
    """Return the typing of a comparison; it gives None where ClickHouse's own operator is right.

    `limits` are bounds of the values, as in Worded.
    """

    def words(kinds: Sequence[Kind]) -> Worded | None:
        if any(map(is_float, kinds)) and any(map(_is_wide, kinds)):
            return Worded(f"toBool({_with_float(sign, kinds)})")
        if not any(map(is_decimal, kinds)) or not all(is_decimal(kind) or is_whole(kind) for kind in kinds):
            return None
        sizes = [_size(kind) for kind in kinds]
        scale = max(size[1] for size in sizes)
        if sizes[0][1] == sizes[1][1] and all(map(is_decimal, kinds)):
            return None
        room = PRECISION_MAX - scale
        most = [_most(*each, scale) for each in zip(kinds, limits, strict=True)]
        wide = [n for n, (digits, own) in enumerate(sizes) if digits - own > room and most[n] >= 10**PRECISION_MAX]
        bits = 256 if wide else _bits(kinds, max(most))
        texts = [_as_decimal(f"{{{number}}}", kinds[number], scale, bits, number in wide) for number in (0, 1)]
        text = f"{texts[0]} {sign} {texts[1]}"
        for number in wide:  # at most one: the other operand has this scale
            big = _is_big(f"{{{number}}}", kinds[number], room)
            beyond = f"{{{number}}} {sign} {_zero(kinds[number])}"
            if number == 1:
                beyond = f"{_zero(kinds[number])} {sign} {{{number}}}"
            text = f"if({big}, {beyond}, {text})"
        return Worded(f"toBool({null_or(text, kinds) if wide else text})")

    return words


def _is_wide(kind: Kind) -> bool:
    return kind is not None and kind.bare.name in INTEGERS and kind.bare.bits > 64


def _with_float(sign: str, kinds: Sequence[Kind]) -> str:
    """Compare as ClickHouse does, except with infinity: there the whole number is cast to Float64."""
    place = next(number for number, kind in enumerate(kinds) if _is_wide(kind))
    whole, other = f"{{{place}}}", f"{{{1 - place}}}"
    plain = f"{{0}} {sign} {{1}}"
    return null_or(f"if(isInfinite({other}), {plain.replace(whole, f'toFloat64({whole})')}, {plain})", kinds)


def _size(kind: Kind) -> tuple[int, int]:
    assert kind is not None
    if is_decimal(kind):
        return kind.bare.numbers[0], kind.bare.numbers[1]
    return DIGITS[8 if kind.bare.name == "Bool" else kind.bare.bits], 0


def _most(kind: Kind, limit: int | None, scale: int) -> int:
    """Return a bound of the absolute values as a decimal of this scale, without its point."""
    assert kind is not None
    return int(min(limit_of(kind), limit or limit_of(kind)) * 10 ** (scale - _size(kind)[1]))


def _bits(kinds: Sequence[Kind], most: int) -> int:
    """Return the width of a decimal that holds every value up to a bound."""
    if any(map(_is_wide, kinds)):  # these become decimals by way of texts
        return 256
    return next((bits for bits in (64, 128) if most <= 2 ** (bits - 1)), 256)


def _as_decimal(text: str, kind: Kind, scale: int, bits: int, is_wide: bool) -> str:
    """Return the number as a decimal of this width and scale; 0 if it is too large for that."""
    if is_decimal(kind) and kind is not None and (bits_of(kind), _size(kind)[1]) == (bits, scale):
        return text
    room = PRECISION_MAX - scale
    value = f"if({_is_big(text, kind, room)}, {_zero(kind)}, {text})" if is_wide else text
    if is_whole(kind) and kind is not None and kind.bare.name != "Bool" and kind.bare.bits > 64:
        value = f"toString({value})"
    return f"toDecimal{bits}({value}, {scale})"


def _is_big(text: str, kind: Kind, room: int) -> str:
    return f"({text} >= {_limit(kind, room)} OR {text} <= -{_limit(kind, room)})"


def _limit(kind: Kind, room: int) -> str:
    one = f"1{'0' * room}"
    assert kind is not None
    return f"toDecimal256('{one}', {kind.bare.numbers[1]})" if is_decimal(kind) else f"toInt256('{one}')"


def _zero(kind: Kind) -> str:
    assert kind is not None
    return f"toDecimal256(0, {kind.bare.numbers[1]})" if is_decimal(kind) else f"to{kind.bare.name}(0)"
