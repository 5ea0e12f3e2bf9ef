"""SQL of `//` and `%` of floats, with Python's results. ClickHouse rounds the product, so its remainder is off by that.

With q = trunc(a / b), the remainder a - q * b can always be written as a float, even where the quotient was rounded up
to the next whole number. The product q * b is computed in two parts (Dekker): p, and the error of rounding it. Where
the product would leave the range of floats, both numbers are scaled by a power of two first.
"""

from __future__ import annotations

from aaiclick.data.sql import quoting

_LIMIT = 2**53
_TOLD = quoting.text("// and % of floats: by 0, or the quotient is too large to be exact")
_SPLIT = 2**27 + 1
_HUGE, _TINY, _STEP = "1e200", "1e-200", 2.0**300


def _named(names: str, values: str, body: str) -> str:
    """Return the expression `body` with names bound to values; each value is given as a list of one."""
    return f"arrayMap(({names}) -> {body}, {values})[1]"


def _head(value: str) -> str:
    return f"({_SPLIT}. * {value} - ({_SPLIT}. * {value} - {value}))"


_LOST = "((f * g - p) + f * (y - g) + (q - f) * g + (q - f) * (y - g))"
_REST = _named("f, g, p", f"[{_head('q')}], [{_head('y')}], [q * y]", f"((x - p) - {_LOST})")
"""SQL of x - q * y, exactly."""
_SCALED = _named("x, y", "[a * s], [b * s]", f"if(q = 0, a, {_REST} / s)")
_SCALE = f"multiIf(abs(b) > {_HUGE}, {1 / _STEP!r}, abs(b) < {_TINY}, {_STEP!r}, 1.)"


def _with_rest(answer: str) -> str:
    """Return SQL for an answer in terms of a, b (the arguments), q = trunc(a / b) and r, the remainder."""
    found = _named("s", f"[{_SCALE}]", _SCALED)
    found = _named("r", f"[{found}]", answer)
    found = _named("q", "[trunc(a / b)]", found)
    return _named("a, b", "[{0}], [{1}]", found)


_OTHER_SIGN = "(r != 0 AND (r < 0) != (b < 0))"
_CHECK = f"throwIf(ifNull({{wrong}}, 0), {_TOLD})"

REMAINDER = _with_rest(
    f"if({_CHECK.format(wrong=f'abs(q) >= {_LIMIT} OR (b = 0 AND isNaN(q))')} = 0, "
    f"multiIf(r = 0, if(b < 0, -0., 0.), {_OTHER_SIGN}, r + b, r), nan)"
)
"""A float with the sign of the divisor; the arguments are floats or are cast to Float64."""

_ROUNDED_DOWN = f"toInt64(if(abs(q) < {_LIMIT}, q, 0.)) - toInt64({_OTHER_SIGN})"
FLOOR = _with_rest(f"if({_CHECK.format(wrong=f'NOT abs(q) < {_LIMIT}')} = 0, {_ROUNDED_DOWN}, 0)")
"""The quotient as an Int64, rounded down."""
