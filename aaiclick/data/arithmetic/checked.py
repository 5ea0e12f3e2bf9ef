"""SQL of exact arithmetic on whole numbers and decimals, by the operands' types: `+ - * / // %`, `-a`, `abs`, sums.

ClickHouse widens the results of whole numbers of less than 64 bits, so nothing is lost. Those of 64 and 128 bits are
computed in twice the width and cast back with a check; those of 256 bits are refused by an estimate in floats.
Decimals are computed with as many digits as the answer may have, or refused by an estimate. Floats, values that are no
numbers, and values whose type is not known get ClickHouse's own operators. `wrapping()` uses those for all numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from aaiclick.data.arithmetic import remainders
from aaiclick.data.arithmetic.overflow import BEYOND, TOLD
from aaiclick.data.sql import quoting
from aaiclick.data.typing.expression_types import (
    BYTE,
    CLASSES,
    COUNT,
    FLOAT,
    Kind,
    Typing,
    Worded,
    as_key,
    decimal,
    is_decimal,
    is_float,
    is_null,
    is_whole,
    like,
)
from aaiclick.data.typing.integer_types import ROWS_MAX, Whole, alike, limit_of, named, null_or, widened

_FUNCTIONS = {"+": "plus", "-": "minus", "*": "multiply"}
_DIGITS = {8: 3, 16: 5, 32: 10, 64: 20, 128: 39, 256: 78}
_MOST = 76
QUOTIENT_SCALE = 18
"""The least number of digits after the point of a quotient of decimals."""


def added(sign: str) -> Typing:
    """Return the checked typing of `+`, `-` or `*`."""

    def words(kinds: Sequence[Kind]) -> Worded | None:
        if all(map(is_whole, kinds)):
            return _checked(sign, kinds)
        if _are_decimals(kinds):
            return _multiplied(kinds) if sign == "*" else _summed(sign, kinds)
        return wrapped(sign)(kinds)

    return words


def wrapped(sign: str) -> Typing:
    """Return the unchecked typing of `+`, `-` or `*`, for `wrapping()` and for operands that need no check."""

    def words(kinds: Sequence[Kind]) -> Worded | None:
        plain = f"({{0}} {sign} {{1}})"
        if all(map(is_whole, kinds)):
            return Worded(plain, like(widened(sign, kinds), *kinds))
        if any(map(is_float, kinds)) and all(is_whole(k) or is_float(k) or is_decimal(k) for k in kinds):
            return Worded(_beside_floats(plain, kinds), like(FLOAT, *kinds))
        return Worded(plain)

    return words


def _beside_floats(text: str, kinds: Sequence[Kind]) -> str:
    """Cast wide whole numbers to floats: ClickHouse combines floats only with whole numbers of up to 64 bits."""
    for place, kind in enumerate(kinds):
        if is_whole(kind) and kind is not None and Whole(kind).bits > 64:
            text = text.replace(f"{{{place}}}", f"toFloat64({{{place}}})")
    return text


def _checked(sign: str, kinds: Sequence[Kind]) -> Worded:
    answer, numbers = widened(sign, kinds), [Whole(kind) for kind in kinds if kind is not None]
    kind = like(answer, *kinds)
    bits = max(number.bits for number in numbers)
    if bits < 64:
        return Worded(f"({{0}} {sign} {{1}})", kind)
    if bits > 128:
        limit = 2 ** (255 if answer.name.startswith("I") else 256)
        least = 0 if answer.name.startswith("U") else -limit
        return Worded(_estimated(f"({{0}} {sign} {{1}})", f"{{0}} {sign} {{1}}", least, limit, sign), kind)
    wide = named(2 * bits, sign != "*" or any(number.signed for number in numbers))
    return Worded(null_or(f"accurateCast(to{wide}({{0}}) {sign} {{1}}, '{answer}')", kinds), kind)


def _estimated(value: str, about: str, least: float, limit: float, sign: str) -> str:
    """Return the value with a check by floats, which raises an error near or beyond a limit.

    The check adds a 0 to the value, so adding 0 must not change its type.
    """
    told = quoting.text(BEYOND.format(TOLD[_FUNCTIONS[sign]]))
    floats = about.replace("{0}", "toFloat64({0})").replace("{1}", "toFloat64({1})")
    low, high = least * (1 - 1e-14) if least else 0.0, limit * (1 - 1e-14)
    return f"({value} + throwIf(ifNull({floats} < {low!r} OR {floats} >= {high!r}, 0), {told}))"


def negated(kinds: Sequence[Kind]) -> Worded | None:
    """Return the SQL of `-a`; whole numbers are computed as 0 - a, checked: the least Int64 has no negative Int64."""
    kind = kinds[0]
    if is_whole(kind):
        return Worded(*_turned(_checked("-", (BYTE, kind))))
    if is_float(kind):
        return Worded("(-{0})", kind)
    return Worded("(-{0})", kind) if is_decimal(kind) else None


def wrapped_negated(kinds: Sequence[Kind]) -> Worded | None:
    """Return the SQL of `-a` unchecked, for `wrapping()`: the least number wraps around."""
    return Worded("(-{0})")


def _turned(worded: Worded) -> Worded:
    """Turn a template of two arguments into one of one: 0 becomes the first argument, the argument the second."""
    return Worded(worded.sql.replace("{0}", "0").replace("{1}", "{0}"), worded.kind)


def without_sign(kinds: Sequence[Kind]) -> Worded | None:
    """Return the SQL of `abs`: unsigned for whole numbers, so that every number has a result."""
    kind = kinds[0]
    if is_whole(kind) and kind is not None:
        return Worded("abs({0})", like(named(Whole(kind).bits, False), kind))
    return Worded("abs({0})", kind) if is_float(kind) or is_decimal(kind) else None


def rounded(kinds: Sequence[Kind]) -> Worded | None:
    """Return the SQL of `round`. Whole numbers are rounded in twice the width and cast back: 127 to 130 is refused."""
    kind, plain = kinds[0], "roundBankers({0}{args})"
    if len(kinds) < 2 or kind is None or kind.bare.name == "Bool" or not is_whole(kind):
        return Worded(plain, kind)
    number = Whole(kind)
    if number.bits == 256:
        return Worded(plain)
    wide = named(2 * number.bits, number.signed)
    text = f"accurateCast(roundBankers(to{wide}({{0}}){{args}}), '{kind.bare}')"
    return Worded(null_or(text, kinds[:1]), kind)


# ---------------------------------------------------------------- // and %

FLOOR = "(intDiv({0}, {1}) - toInt8((modulo({0}, {1}) != 0) AND (({0} < 0) != ({1} < 0))))"
_REST = "modulo({0}, {1})"
REMAINDER = f"({_REST} + if(({_REST} != 0) AND (({_REST} < 0) != ({{1}} < 0)), {{1}}, 0))"


def floor_divided(kinds: Sequence[Kind]) -> Worded | None:
    """Return the SQL of `//`: a whole number, rounded down, for operands of all types."""
    if all(map(is_whole, kinds)):
        numbers = [Whole(kind) for kind in kinds if kind is not None]
        if not any(number.signed for number in numbers):
            return Worded("intDiv({0}, {1})", like(named(numbers[0].bits, False), *kinds))
        kind, text = alike(FLOOR, kinds, numbers)
        return Worded(text, like(named(2 * kind.bits if kind.bits < 64 else kind.bits, True), *kinds))
    if _are_decimals(kinds):
        digits, scale = _side_by_side(kinds)
        return _of_decimals(FLOOR, kinds, digits + scale, scale, None)
    if _beside_a_float(kinds):
        return Worded(_as_floats(remainders.FLOOR, kinds), like(named(64, True), *kinds) if None not in kinds else None)
    return Worded(FLOOR)


def remainder(kinds: Sequence[Kind]) -> Worded | None:
    """Return the SQL of `%`: the result has the sign of the divisor."""
    if all(map(is_whole, kinds)):
        numbers = [Whole(kind) for kind in kinds if kind is not None]
        if not any(number.signed for number in numbers):
            return Worded(_REST, like(named(numbers[1].bits, False), *kinds))
        kind, text = alike(REMAINDER, kinds, numbers)
        return Worded(f"to{kind}({text})", like(kind, *kinds))
    if _are_decimals(kinds):
        digits, scale = _side_by_side(kinds)
        return _of_decimals(REMAINDER, kinds, digits + 1, scale, scale)
    if _beside_a_float(kinds):
        return Worded(_as_floats(remainders.REMAINDER, kinds), like(FLOAT, *kinds) if None not in kinds else None)
    return Worded(REMAINDER)


def _beside_a_float(kinds: Sequence[Kind]) -> bool:
    """Return whether one is a float, and the others are numbers or of a type that is not known."""
    return any(map(is_float, kinds)) and all(k is None or is_float(k) or is_whole(k) or is_decimal(k) for k in kinds)


def _as_floats(text: str, kinds: Sequence[Kind]) -> str:
    """Return the SQL with its operands as floats. What turns out to be a text or a time is refused by ClickHouse."""
    for place, kind in enumerate(kinds):
        operand = f"{{{place}}}"
        text = text.replace(operand, f"toFloat64({operand})" if kind is not None else f"({operand} * toFloat64(1))")
    return text


# ---------------------------------------------------------------- decimals


def _are_decimals(kinds: Sequence[Kind]) -> bool:
    """Return whether the operands are decimals, perhaps together with whole numbers."""
    return any(map(is_decimal, kinds)) and all(is_decimal(kind) or is_whole(kind) for kind in kinds)


def _size(kind: Kind) -> tuple[int, int]:
    """Return the number of digits of a type, and how many of them are after the point."""
    assert kind is not None
    if is_decimal(kind):
        return kind.bare.numbers[0], kind.bare.numbers[1]
    return _DIGITS[Whole(kind).bits], 0


def _side_by_side(kinds: Sequence[Kind]) -> tuple[int, int]:
    """Return the digits and the scale of a decimal that holds the values of all these types."""
    sizes = [_size(kind) for kind in kinds]
    scale = max(each[1] for each in sizes)
    return max(digits - own for digits, own in sizes) + scale, scale


def _as_decimals(text: str, kinds: Sequence[Kind], bits: int, scales: Sequence[int]) -> str:
    """Cast the arguments in a template to decimals of one width, each with its scale."""
    for place, scale in enumerate(scales):
        text = text.replace(f"{{{place}}}", f"toDecimal{bits}({{{place}}}, {scale})")
    return text


def _of_decimals(text: str, kinds: Sequence[Kind], digits: int, scale: int, answer: int | None) -> Worded:
    """Return `//` or `%` of decimals cast to one scale, where the answer has up to `digits` digits.

    `answer` is the scale of the answer; None means a whole number.
    """
    found = decimal(min(digits, _MOST), scale)
    assert found is not None
    bits = CLASSES[found.numbers[0]]
    words = null_or(_as_decimals(text, kinds, bits, (scale, scale)), kinds)
    if digits > _MOST:
        words = _limited(words, 10.0 ** (_MOST - scale - (scale if answer is None else 0)), kinds)
    kind = named(bits if bits > 32 else 64, True) if answer is None else found
    return Worded(words, like(kind, *kinds) if answer is not None else None)


def _limited(words: str, limit: float, kinds: Sequence[Kind]) -> str:
    """Raise an error, before the value is computed, if the arguments' absolute values add up to the limit or more."""
    floats = " + ".join(f"abs(toFloat64({{{number}}}))" for number in range(len(kinds)))
    check = f"throwIf(ifNull({floats} >= {limit * (1 - 1e-14)!r}, 0), {quoting.text(BEYOND.format('a decimal'))})"
    return f"if({check} = 0, {words}, NULL)" if any(map(is_null, kinds)) else f"if({check} = 0, {words}, {words})"


def _summed(sign: str, kinds: Sequence[Kind]) -> Worded:
    digits, scale = _side_by_side(kinds)
    digits += digits == 38  # 39 digits in a Decimal128 cannot be read back; ClickHouse checks narrower sums
    found = decimal(min(digits, _MOST), scale)
    assert found is not None
    text = _as_decimals(f"({{0}} {sign} {{1}})", kinds, CLASSES[found.numbers[0]], [_size(kind)[1] for kind in kinds])
    text = null_or(text, kinds)
    if digits >= _MOST:
        text = _limited(text, 10.0 ** (_MOST - scale), kinds)
    return Worded(text, like(found, *kinds))


def _multiplied(kinds: Sequence[Kind]) -> Worded | None:
    sizes = [_size(kind) for kind in kinds]
    digits, scale = sum(size[0] for size in sizes), sum(size[1] for size in sizes)
    if scale > _MOST:
        return None  # ClickHouse refuses it
    found = decimal(min(digits, _MOST), scale)
    assert found is not None
    text = _as_decimals("({0} * {1})", kinds, CLASSES[found.numbers[0]], [size[1] for size in sizes])
    text = null_or(text, kinds)
    if digits > _MOST:
        limit = 10.0 ** (_MOST - scale)
        text = _estimated(text, "{0} * {1}", -limit, limit, "*")
        return Worded(text, like(found, *kinds))
    return Worded(text, like(found, *kinds), prod(limit_of(kind) for kind in kinds if kind is not None))


def divided(kinds: Sequence[Kind]) -> Worded | None:
    """Return the SQL of `/`: a float; of decimals a decimal with QUOTIENT_SCALE or more fraction digits, cut off."""
    if all(is_whole(kind) or is_float(kind) for kind in kinds) or any(map(is_float, kinds)):
        text = _beside_floats("({0} / {1})", kinds) if any(map(is_float, kinds)) else "({0} / {1})"
        return Worded(text, like(FLOAT, *kinds) if None not in kinds else None)
    if not _are_decimals(kinds):
        return None
    (digits, own), (_, other) = _size(kinds[0]), _size(kinds[1])
    scale = max(own, QUOTIENT_SCALE)
    needed = digits - own + scale + other
    found = decimal(min(max(needed, _size(kinds[1])[0]), _MOST), scale)
    assert found is not None
    text = _as_decimals("({0} / {1})", kinds, CLASSES[found.numbers[0]], (scale, other))
    is_longer = _size(kinds[1])[0] > _MOST
    if is_longer and needed < _MOST and kinds[1] is not None:
        text = text.replace("{1}", _within_digits(Whole(kinds[1])))
    text = null_or(text, kinds)
    if needed > _MOST - is_longer:
        text = _limited(text, 10.0 ** (_MOST - scale - other), kinds)
    return Worded(text, like(found, *kinds))


def _within_digits(number: Whole) -> str:
    """Clamp a divisor to what a decimal holds: larger ones give 0 anyway, for all dividends that have fewer digits."""
    kind, most = named(256, number.signed), "9" * _MOST
    text = f"least({{1}}, to{kind}('{most}'))"
    return f"greatest({text}, to{kind}('-{most}'))" if number.signed else text


# ---------------------------------------------------------------- totals


def total(kinds: Sequence[Kind]) -> Worded | None:
    """Return the SQL of `sum`, checked; the sum of no values is 0."""
    kind = kinds[0]
    plain = "ifNull(sum({0}){over}, 0)"
    if is_whole(kind) and kind is not None:
        number = Whole(kind)
        answer = named(max(64, number.bits), number.signed)
        if number.bits < 64:
            return Worded(plain, answer)
        if number.bits < 256:
            return Worded(f"accurateCast(ifNull(sum(toInt{2 * number.bits}({{0}})){{over}}, 0), '{answer}')", answer)
        limit = 2.0 ** (255 if number.signed else 256)
        return Worded(_estimated_total(plain, limit), answer)
    if is_decimal(kind):
        digits, scale = _size(kind)
        if digits <= 18:
            return Worded(plain, decimal(38, scale))
        if digits <= 38:
            return Worded(plain.replace("{0}", f"toDecimal256({{0}}, {scale})"), decimal(_MOST, scale))
        return Worded(_estimated_total(plain, 10.0 ** (_MOST - scale)), decimal(_MOST, scale))
    return Worded(plain, FLOAT if is_float(kind) else None)


def limited_total(limits: Sequence[int | None]) -> Typing:
    """Return the typing of `sum` of values within a bound: no check where even the sum of all rows is in range."""

    def words(kinds: Sequence[Kind]) -> Worded | None:
        found, kind = total(kinds), kinds[0]
        if found is None or kind is None or not is_decimal(kind):
            return found
        most = min(limit_of(kind), limits[0] or limit_of(kind)) * ROWS_MAX
        if most >= 10**_MOST:
            return found
        return Worded(found.sql if _size(kind)[0] <= 38 else "ifNull(sum({0}){over}, 0)", found.kind, most)

    return words


def _estimated_total(plain: str, limit: float) -> str:
    told = quoting.text(BEYOND.format(TOLD["sum"]))
    about = plain.replace("{0}", "abs(toFloat64({0}))")
    return f"({plain} + throwIf({about} >= {limit * (1 - 1e-14)!r}, {told}))"


def wrapped_total(kinds: Sequence[Kind]) -> Worded | None:
    """Return the SQL of `sum` unchecked, for `wrapping()`."""
    kind = kinds[0]
    if is_whole(kind) and kind is not None:
        number = Whole(kind)
        return Worded("ifNull(sum({0}){over}, 0)", named(max(64, number.bits), number.signed))
    return Worded("ifNull(sum({0}){over}, 0)", FLOAT if is_float(kind) else None)


def total_so_far(kinds: Sequence[Kind]) -> Worded | None:
    """Return the SQL of `cumsum`, checked. Before the first value of a Nullable column, the total is None."""
    found = total(kinds)
    if found is None:
        return None
    text = found.sql.replace("ifNull(sum(", "sum(").replace("{over}, 0)", "{over}")
    if is_null(kinds[0]) and "accurateCast" in text:
        inner = text[len("accurateCast(") : text.index("{over}") + len("{over}")]
        text = f"if(isNull({inner}), NULL, {text.replace(inner, f'assumeNotNull({inner})')})"
    return Worded(text, like(found.kind, *kinds))


def mean(kinds: Sequence[Kind]) -> Worded | None:
    """Return the SQL of `mean`. Long numbers are averaged as floats: the sum inside `avg` would wrap around."""
    kind = kinds[0]
    if kind is None or not (is_whole(kind) or is_decimal(kind) or is_float(kind)):
        return None
    is_long = (is_whole(kind) and Whole(kind).bits >= 64) or (is_decimal(kind) and _size(kind)[0] > 18)
    return Worded("avg(toFloat64({0}))" if is_long else "avg({0})", like(FLOAT, kind))


def distinct(kinds: Sequence[Kind]) -> Worded | None:
    """Return the SQL of `nunique`: 0.0 and -0.0 count as one value, and all NaN as one."""
    return Worded(f"uniqExact({as_key(kinds[0])})", COUNT)
