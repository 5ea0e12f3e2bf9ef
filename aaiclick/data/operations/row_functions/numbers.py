"""Functions of numbers: roots, logarithms, trigonometry, rounding, ranges and integers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from aaiclick.data.arithmetic import checked
from aaiclick.data.operations import bins
from aaiclick.data.operations.operation import (
    ALL,
    Applied,
    Operation,
    condition,
    gives,
    made,
    same_as_first,
)
from aaiclick.data.sameness import nans
from aaiclick.data.typing.expression_types import (
    FLOAT,
    Kind,
    Typing,
    Worded,
    greatest_kind,
    is_whole,
    least_kind,
    like,
    maybe,
)
from aaiclick.data.typing.grammar import Type
from aaiclick.data.typing.integer_types import Whole, named, null_or
from aaiclick.errors import InputError
from aaiclick.urls import shown

_CLIP = "if(isNull({0}), NULL, least(greatest({0}, {1}), {2}))"
_EXPM1 = "(2 * exp({0} / 2) * sinh({0} / 2))"
"""ClickHouse has no expm1; `exp(x) - 1` loses all digits near 0, this formula does not."""

_TANH = "if(abs({0}) < 20, sinh({0}) / cosh({0}), toFloat64(sign({0})))"
"""ClickHouse's own tanh returns 0 for small numbers."""

_BETWEEN = {
    "both": ("{0} >= {1}", "{0} <= {2}"),
    "left": ("{0} >= {1}", "{0} < {2}"),
    "right": ("{0} > {1}", "{0} <= {2}"),
    "neither": ("{0} > {1}", "{0} < {2}"),
}


def _clipped(kinds: Sequence[Kind]) -> Kind:
    return maybe(least_kind([greatest_kind(kinds[:2]), kinds[2]]))


def _float(words: str) -> Operation:
    return gives(words, FLOAT)


def _of_whole(name: str, words: Callable[[int], str], kind: Callable[[int], Type]) -> Typing:
    """Return a typing for integers of up to 64 bits, with SQL by their width; other known types raise InputError."""

    def typing(kinds: Sequence[Kind]) -> Worded | None:
        if None in kinds:
            return None
        known = [each for each in kinds if each is not None]
        if not all(map(is_whole, known)) or any(Whole(each).bits > 64 for each in known):
            rule, value = "it needs whole numbers of up to 64 bits", shown(" and ".join(map(str, known)))
            raise InputError(field=name, value=value, rule=rule, hint='Convert them: cast("Int64").')
        bits = max(Whole(each).bits for each in known)
        return Worded(null_or(words(bits), kinds), like(kind(bits), *kinds))

    return typing


_GCD = "toUInt{bits}(if({{0}} = 0, abs({{1}}), if({{1}} = 0, abs({{0}}), gcd({a}, {b}))))"
_LCM = "accurateCast(if({{0}} = 0 OR {{1}} = 0, 0, toUInt128(intDiv({a}, gcd({a}, {b}))) * {b}), 'UInt64')"
_POSITIVE = {"a": "greatest(abs({0}), 1)", "b": "greatest(abs({1}), 1)"}
"""ClickHouse may evaluate the branch that `if` does not choose; these keep `gcd` from seeing a zero."""


def _whole_pair(name: str, words: str, kind: Callable[[int], Type]) -> Operation:
    def said(bits: int) -> str:
        return words.format(bits=bits, **_POSITIVE)

    return Operation(said(64), 2, 2, typed=_of_whole(name, said, kind))


def clip(lower: object = None, upper: object = None) -> Applied:
    """Limit values to at least `lower` and at most `upper`; either may be left out."""
    if lower is None or upper is None:
        bound = "greatest" if upper is None else "least"
        end, kind = upper if lower is None else lower, greatest_kind if upper is None else least_kind
        words = f"if(isNull({{0}}), NULL, {bound}({{0}}, {{1}}))"
        if end is None:
            raise InputError(field="clip", value="nothing", rule="it must be given lower, upper or both", hint="")
        typing = nans.chosen(words, lambda kinds: maybe(kind(kinds)))
        return Applied(Operation(words, 2, 2, times=ALL, typed=typing), (end,))
    return Applied(Operation(_CLIP, 3, 3, times=ALL, typed=nans.chosen(_CLIP, _clipped)), (lower, upper))


def is_between(low: object, high: object, closed: str = "both") -> Applied:
    """Return whether each value is between `low` and `high`; `closed` tells which bounds are included."""
    if closed not in _BETWEEN:
        raise InputError(
            field="closed", value=shown(repr(closed)), rule="it must be both, left, right or neither", hint=""
        )
    words = " AND ".join(_BETWEEN[closed])
    return Applied(Operation(f"toBool({words})", 3, 3, truth=True, compares=True), (low, high))


NUMBERS = {
    "sqrt": _float("sqrt({0})").telling("the square root; NaN below 0", "[4.0, -1.0]", "sqrt()", "[2.0, nan]"),
    "cbrt": _float("cbrt({0})").telling("the cube root", "[27.0, -8.0]", "cbrt()", "[3.0, -2.0]"),
    "exp": _float("exp({0})").telling("e to the power of it", "[0.0, None]", "exp()", "[1.0, None]"),
    "expm1": _float(f"if({{0}} < -50, -1, {_EXPM1})").telling(
        "`exp() - 1`, exact near 0", "[0.0, 1e-12]", "expm1().round(18)", "[0.0, 1e-12]"
    ),
    "log": _float("log({0})").telling("the natural logarithm", "[1.0, 0.0]", "log()", "[0.0, -inf]"),
    "log2": _float("log2({0})").telling("the logarithm to 2", "[8.0]", "log2()", "[3.0]"),
    "log10": _float("log10({0})").telling("the logarithm to 10", "[1000.0]", "log10()", "[3.0]"),
    "log1p": _float("log1p({0})").telling(
        "`(1 + x).log()`, exact near 0", "[0.0, 1e-12]", "log1p().round(18)", "[0.0, 1e-12]"
    ),
    "sin": _float("sin({0})").telling("the sine of radians", "[0.0]", "sin()", "[0.0]"),
    "cos": _float("cos({0})").telling("the cosine of radians", "[0.0]", "cos()", "[1.0]"),
    "tan": _float("tan({0})").telling("the tangent of radians", "[0.0]", "tan()", "[0.0]"),
    "asin": _float("asin({0})").telling("the arc sine, in radians", "[0.0, 2.0]", "asin()", "[0.0, nan]"),
    "acos": _float("acos({0})").telling("the arc cosine, in radians", "[1.0]", "acos()", "[0.0]"),
    "atan": _float("atan({0})").telling("the arc tangent, in radians", "[0.0]", "atan()", "[0.0]"),
    "atan2": gives("atan2(toFloat64({0}), toFloat64({1}))", FLOAT, 2).telling(
        "the angle of the point (x, y), called on y",
        '{"y": [1.0], "x": [0.0]}',
        'col("y").atan2(col("x")).degrees()',
        "[90.0]",
    ),
    "sinh": _float("sinh({0})").telling("the hyperbolic sine", "[0.0]", "sinh()", "[0.0]"),
    "cosh": _float("cosh({0})").telling("the hyperbolic cosine", "[0.0]", "cosh()", "[1.0]"),
    "tanh": _float(_TANH).telling("the hyperbolic tangent", "[0.0]", "tanh()", "[0.0]"),
    "asinh": _float("asinh({0})").telling("the inverse of `sinh`", "[0.0]", "asinh()", "[0.0]"),
    "acosh": _float("acosh({0})").telling("the inverse of `cosh`", "[1.0]", "acosh()", "[0.0]"),
    "atanh": _float("atanh({0})").telling("the inverse of `tanh`", "[0.0]", "atanh()", "[0.0]"),
    "degrees": _float("degrees({0})").telling("radians as degrees", "[0.0]", "degrees()", "[0.0]"),
    "radians": _float("radians({0})").telling("degrees as radians", "[180.0]", "radians().round(4)", "[3.1416]"),
    "hypot": gives("hypot(toFloat64({0}), toFloat64({1}))", FLOAT, 2).telling(
        "the length of the hypotenuse", "[3]", "hypot(4)", "[5.0]"
    ),
    "floor": same_as_first("floor({0})").telling("rounded down", "[1.5, -1.5]", "floor()", "[1.0, -2.0]"),
    "ceil": same_as_first("ceil({0})").telling("rounded up", "[1.5, -1.5]", "ceil()", "[2.0, -1.0]"),
    "trunc": same_as_first("trunc({0})").telling("rounded towards 0", "[1.5, -1.5]", "trunc()", "[1.0, -1.0]"),
    "round": Operation("roundBankers({0}{args})", 1, 2, typed=checked.rounded).telling(
        "rounded to this many digits, halves to the even neighbour", "[0.5, 1.5, 2.25]", "round(1)", "[0.5, 1.5, 2.2]"
    ),
    "sign": Operation("sign({0})", typed=nans.sign).telling("-1, 0 or 1", "[-3, 0, 7]", "sign()", "[-1, 0, 1]"),
    "abs": Operation("abs({0})", typed=checked.without_sign).telling(
        "without its sign, as `abs(a)` gives it", "[-3, 3]", "abs()", "[3, 3]"
    ),
    "clip": made(clip, "limited to the range between two values", "[1, 5, None]", "clip(2, 4)", "[2, 4, None]"),
    "is_nan": condition("isNaN({0})").telling("whether it is NaN", "[nan, 1.0]", "is_nan()", "[True, False]"),
    "is_finite": condition("isFinite(toFloat64({0}))").telling(
        "whether it is neither NaN nor infinite", "[nan, inf, 1.0]", "is_finite()", "[False, False, True]"
    ),
    "is_inf": condition("isInfinite(toFloat64({0}))").telling(
        "whether it is infinite", "[nan, inf, 1.0]", "is_inf()", "[False, True, False]"
    ),
    "gcd": _whole_pair("gcd", _GCD, lambda bits: named(bits, False)).telling(
        "the greatest common divisor of whole numbers, never negative", "[12, -18, 0]", "gcd(8)", "[4, 2, 8]"
    ),
    "lcm": _whole_pair("lcm", _LCM, lambda _: named(64, False)).telling(
        "the least common multiple; refused beyond 64 bits", "[4, -6, 0]", "lcm(10)", "[20, 30, 0]"
    ),
    "bit_count": Operation(
        "bitCount(abs({0}))",
        typed=_of_whole("bit_count", lambda _: "bitCount(abs({0}))", lambda _: Type("UInt8")),
    ).telling("how many bits are set, as Python counts them", "[7, -1, 0]", "bit_count()", "[3, 1, 0]"),
    "between": made(
        is_between,
        "whether it lies between two values, both included; `closed` may be `left`, `right` or `neither`",
        "[1, 2, 3, None]",
        'between(1, 3, closed="left")',
        "[True, True, False, None]",
    ),
    "cut": made(
        bins.cut,
        "between which edges it lies: with a label more than edges, below and above them too; with one less, None is "
        "outside. `right=False`: the lower edge belongs to it",
        "[1, 5, 10, 99]",
        'cut([0, 5, 10], ["low", "high"])',
        '["low", "low", "high", None]',
    ),
}
