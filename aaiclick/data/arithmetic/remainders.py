"""`//` and `%` of floats, as Python computes them: ClickHouse rounds the product, and its remainder is off by that.

With q = trunc(a / b), the remainder a - q * b can always be written as a float, also where the quotient was rounded up
to the next whole number. It is found by the product in two parts (Dekker): p, and what its rounding has lost. Where the
product would leave the range of floats, both numbers are moved by a power of two before.
"""

from __future__ import annotations

from aaiclick.data.sql import quoting

_LIMIT = 2**53
_TOLD = quoting.text("// and % of floats: by 0, or the quotient is too large to be exact")
_SPLIT = 2**27 + 1
_HUGE, _TINY, _STEP = "1e200", "1e-200", 2.0**300


def _named(names: str, values: str, body: str) -> str:
    """The body, in which these values have names."""
    return f"arrayMap(({names}) -> {body}, {values})[1]"


def _head(value: str) -> str:
    return f"({_SPLIT}. * {value} - ({_SPLIT}. * {value} - {value}))"


_LOST = "((f * g - p) + f * (y - g) + (q - f) * g + (q - f) * (y - g))"
_REST = _named("f, g, p", f"[{_head('q')}], [{_head('y')}], [q * y]", f"((x - p) - {_LOST})")
"""x - q * y, exactly."""
_SCALED = _named("x, y", "[a * s], [b * s]", f"if(q = 0, a, {_REST} / s)")
_SCALE = f"multiIf(abs(b) > {_HUGE}, {1 / _STEP!r}, abs(b) < {_TINY}, {_STEP!r}, 1.)"


def _with_rest(answer: str) -> str:
    """An answer that is said by the numbers a and b, their quotient q, and what is left of a: r."""
    found = _named("s", f"[{_SCALE}]", _SCALED)
    found = _named("r", f"[{found}]", answer)
    found = _named("q", "[trunc(a / b)]", found)
    return _named("a, b", "[toFloat64({0})], [toFloat64({1})]", found)


_OTHER_SIGN = "(r != 0 AND (r < 0) != (b < 0))"
_CHECK = f"throwIf(ifNull({{wrong}}, 0), {_TOLD})"

REMAINDER = _with_rest(
    f"if({_CHECK.format(wrong=f'abs(q) >= {_LIMIT} OR (b = 0 AND isNaN(q))')} = 0, "
    f"multiIf(r = 0, if(b < 0, -0., 0.), {_OTHER_SIGN}, r + b, r), nan)"
)
"""A float with the sign of the divisor, of numbers that are floats or become such."""

_ROUNDED_DOWN = f"toInt64(if(abs(q) < {_LIMIT}, q, 0.)) - toInt64({_OTHER_SIGN})"
FLOOR = _with_rest(f"if({_CHECK.format(wrong=f'NOT abs(q) < {_LIMIT}')} = 0, {_ROUNDED_DOWN}, 0)")
"""A whole number of 64 bits, rounded down."""
