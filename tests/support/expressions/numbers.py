"""Random expressions of whole numbers and of decimals."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

from aaiclick.data.typing.expression_types import Kind
from aaiclick.data.typing.grammar import Type, parse
from tests.support.expressions.maker import COLUMNS, EITHER, REFUSED, SORTS, Apart, Maker, Node, in_range

# ---------------------------------------------------------------- whole numbers


def is_whole(kind: Type) -> bool:
    return kind.name.startswith(("Int", "UInt"))


SMALL = [0, 1, 2, 3, 5, 7, -1, -2, -3, 10, 100, 255, -128]
EDGES = [2**7, 2**31, 2**53 + 1, 2**63 - 1, -(2**63), 2**62, 2**64 - 1]


def _alike(compute: Callable[[Any, Any], Any]) -> Any:
    """Where one is signed, both are computed as signed: an unsigned one of 256 bits may not fit."""

    def model(kind: Kind, kinds: Any, a: Any, b: Any) -> Any:
        found = compute(a, b)
        signed = {known(each).name.startswith("I") for each in kinds}
        if b == -(2**63) or (b == -1 and a < 0 and -a & (-a - 1) == 0):
            return EITHER, found  # ClickHouse does not divide by the least, nor the least by -1
        return (EITHER, found) if len(signed) > 1 and max(a, b, found) >= 2**255 else found

    return model


def binary(sign: str, compute: Callable[[Any, Any], Any], model: Any = None) -> tuple[str, Any, Any]:
    return f"({{0}} {sign} {{1}})", compute, model or (lambda kind, kinds, a, b: compute(a, b))


def _divided(compute: Callable[[Any, Any], Any]) -> Any:
    def model(kind: Kind, kinds: Any, a: Any, b: Any) -> Any:
        return REFUSED if b == 0 else _alike(compute)(kind, kinds, a, b)  # 0 is refused beside None too

    return model


def known(kind: Kind) -> Type:
    """The type itself; of what has none that is known, nothing is foretold."""
    if kind is None:
        raise Apart
    return kind.bare


def _bits_of(kind: Kind) -> int:
    return known(kind).bits


def _left(kind: Kind, kinds: Any, a: int, n: int) -> Any:
    if not 0 <= n < _bits_of(kinds[0]):
        return REFUSED
    return REFUSED if in_range(a << n, kinds[0]) is REFUSED else a << n


def _right(kind: Kind, kinds: Any, a: int, n: int) -> Any:
    return a >> n if 0 <= n < _bits_of(kinds[0]) else (EITHER, 0)


def _inverted(kind: Kind, kinds: Any, a: int) -> Any:
    return ~a if known(kinds[0]).name.startswith("I") else 2 ** _bits_of(kinds[0]) - 1 - a


WHOLE_SIGNS = [
    binary("+", lambda a, b: a + b),
    binary("-", lambda a, b: a - b),
    binary("*", lambda a, b: a * b),
    binary("//", lambda a, b: a // b, _divided(lambda a, b: a // b)),
    binary("%", lambda a, b: a % b, _divided(lambda a, b: a % b)),
    binary("&", lambda a, b: a & b, _alike(lambda a, b: a & b)),
    binary("|", lambda a, b: a | b, _alike(lambda a, b: a | b)),
    binary("^", lambda a, b: a ^ b, _alike(lambda a, b: a ^ b)),
]


def _wholes(maker: Maker, depth: int) -> Node:
    chance = maker.chance
    if depth == 0:
        return maker.constant(chance.choice((SMALL, SMALL, EDGES))) if chance.random() < 0.3 else maker.column(is_whole)
    inner = maker.of("whole", depth - 1)
    match chance.randint(0, 13):
        case 0 | 1 | 2 | 3 | 4 | 5:
            return maker.apply(*chance.choice(WHOLE_SIGNS), inner, maker.of("whole", depth - 1))
        case 6:
            return maker.apply("(-{0})", lambda a: -a, lambda kind, kinds, a: -a, inner)
        case 7:
            return maker.apply("abs({0})", abs, lambda kind, kinds, a: abs(a), inner)
        case 8:
            return maker.apply("(~{0})", lambda a: ~a, _inverted, inner)
        case 9:
            places = maker.constant([0, 1, 3, 7, 8, 31, 63, 64, 255])
            made = chance.choice((("<<", lambda a, b: a << b, _left), (">>", lambda a, b: a >> b, _right)))
            return maker.apply(f"({{0}} {made[0]} {{1}})", made[1], made[2], inner, places)
        case 10:
            return extreme(maker, inner, maker.of("whole", depth - 1))
        case 11:
            kind = chance.choice([name for name in COLUMNS if is_whole(parse(name))])
            wanted = f"Nullable({kind})"
            return maker.apply(f"{{0}}.cast({kind})", lambda a: a.cast(wanted), lambda kind, kinds, a: a, inner)
        case 12:
            return _length(maker, depth)
    return either(maker, inner, maker.of("whole", depth - 1), depth)


def _length(maker: Maker, depth: int) -> Node:
    return maker.apply("{0}.length()", lambda a: a.length(), lambda kind, kinds, a: len(a), maker.of("text", depth - 1))


def extreme(maker: Maker, one: Node, other: Node) -> Node:
    name, pick = maker.chance.choice((("least", min), ("greatest", max)))

    def model(kind: Kind, kinds: Any, *values: Any) -> Any:
        there = [value for value in values if value is not None]
        if any(value != value for value in there):
            return math.nan
        if {str(value) for value in there if value == 0} == {"0.0", "-0.0"}:
            raise Apart  # either of them
        found = pick(there, default=None)
        return (EITHER, found) if kind is None else found

    return maker.apply(f"{{0}}.{name}({{1}})", lambda a, b: getattr(a, name)(b), model, one, other, strict=False)


def either(maker: Maker, one: Node, other: Node, depth: int) -> Node:
    """One of two of the same type."""
    if one.kind is None or other.kind is None or one.kind.bare != other.kind.bare or one.is_constant:
        raise Apart
    if maker.chance.random() < 0.5:
        return maker.apply(
            "{0}.fill_null({1})",
            lambda a, b: a.fill_null(b),
            lambda kind, kinds, a, b: b if a is None else a,
            one,
            other,
            strict=False,
        )
    condition = maker.of("truth", max(depth - 1, 0))
    return maker.apply(
        "{0}.choose({1}, {2})",
        lambda c, a, b: c.choose(a, b),
        lambda kind, kinds, c, a, b: a if c else b,
        condition,
        one,
        other,
        strict=False,
    )


# ---------------------------------------------------------------- decimals


def is_decimal(kind: Type) -> bool:
    return kind.name == "Decimal"


def _exactly(compute: Callable[[Fraction, Fraction], Fraction]) -> Any:
    """Computed exactly; where the digits of both together are too many, a refusal is not foretold."""

    def model(kind: Kind, kinds: Sequence[Kind], *values: Any) -> Any:
        if known(kind).numbers[0] == 76:
            limit = Fraction(10) ** (76 - known(kind).numbers[1])
            if sum(abs(Fraction(each)) for each in values) * 4 >= limit:
                return (EITHER, _as_decimal(compute(*map(Fraction, values))))
        return _as_decimal(compute(*map(Fraction, values)))

    return model


def _as_decimal(value: Fraction) -> Any:
    with localcontext(prec=400):
        return Decimal(value.numerator) / Decimal(value.denominator)


def _quotient(kind: Kind, kinds: Sequence[Kind], a: Any, b: Any) -> Any:
    if b == 0:
        return REFUSED
    digits, scale = known(kind).numbers
    exact = Fraction(a) / Fraction(b) * 10**scale
    cut = Fraction(int(exact), 10**scale)
    return (EITHER, _as_decimal(cut)) if digits == 76 else _as_decimal(cut)


def _whole_quotient(kind: Kind, kinds: Sequence[Kind], a: Any, b: Any) -> Any:
    return REFUSED if b == 0 else (EITHER, Fraction(a) // Fraction(b))


def _rest(kind: Kind, kinds: Sequence[Kind], a: Any, b: Any) -> Any:
    if b == 0:
        return REFUSED
    found = _as_decimal(Fraction(a) % Fraction(b))
    return (EITHER, found) if known(kind).numbers[0] == 76 else found


DECIMAL_SIGNS = [
    binary("+", lambda a, b: a + b, _exactly(lambda a, b: a + b)),
    binary("-", lambda a, b: a - b, _exactly(lambda a, b: a - b)),
    binary("*", lambda a, b: a * b, _exactly(lambda a, b: a * b)),
    binary("/", lambda a, b: a / b, _quotient),
    binary("//", lambda a, b: a // b, _whole_quotient),
    binary("%", lambda a, b: a % b, _rest),
]
POINTS = [Decimal("0.5"), Decimal("-1.25"), Decimal(3), Decimal("0.001"), Decimal("100.00"), Decimal("-7")]


def _decimals(maker: Maker, depth: int) -> Node:
    chance = maker.chance
    if depth == 0:
        return maker.constant(POINTS) if chance.random() < 0.25 else maker.column(is_decimal)
    inner = maker.of("decimal", depth - 1)
    match chance.randint(0, 8):
        case 0 | 1 | 2 | 3 | 4:
            other = maker.of("whole", 0) if chance.random() < 0.3 else maker.of("decimal", depth - 1)
            pair = (other, inner) if chance.random() < 0.3 else (inner, other)
            if any(part.kind is None for part in pair):
                raise Apart
            return maker.apply(*chance.choice(DECIMAL_SIGNS), *pair)
        case 5:
            return maker.apply("(-{0})", lambda a: -a, lambda kind, kinds, a: Decimal(a).copy_negate(), inner)
        case 6:
            return maker.apply("abs({0})", abs, lambda kind, kinds, a: Decimal(a).copy_abs(), inner)
        case 7:
            return extreme(maker, inner, inner)
    return either(maker, inner, maker.of("decimal", depth - 1), depth)


SORTS |= {"whole": _wholes, "decimal": _decimals}
