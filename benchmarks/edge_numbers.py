"""Edge cases of numbers: whole ones of every width, floats, decimals, and their casts."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator
from decimal import Context, Decimal, Inexact
from typing import Any

from benchmarks.edges import Build, Case, Row

WIDTHS = (8, 16, 32, 64)
SIGNS: dict[str, Any] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "<": operator.lt,
    "==": operator.eq,
}
"""These are written alike in Python and in both layers."""

INFINITY, NAN = math.inf, math.nan
EXACT = Context(prec=100, traps=[Inexact])


def number_cases() -> Iterator[Case]:
    yield from _widths()
    yield from _mixed()
    yield from _bits_and_powers()
    yield from _with_constants()
    yield from _floats()
    yield from _rounding()
    yield from _decimals()
    yield from _casts()


def _signs(group: str, types: tuple[str, str], rows: list[Row], signs: str = "+ - * / // % < ==") -> Iterator[Case]:
    for sign in signs.split():
        function = SIGNS[sign]
        yield Case(group, sign, types, rows, function, lambda r, f=function: f(r.a, r.b))


def _widths() -> Iterator[Case]:
    for bits in WIDTHS:
        low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
        rows = [(high, 1), (low, 1), (low, -1), (high, high), (low, high), (low, low)]
        rows += [(-7, 2), (7, -2), (-7, -2), (0, 5), (5, 0)]
        signed = f"Int{bits}"
        yield from _signs("whole numbers", (signed, signed), rows)
        yield Case("whole numbers", "-a", (signed,), [(low,), (high,), (0,)], operator.neg, lambda r: -r.a)
        yield Case("whole numbers", "abs", (signed,), [(low,), (high,), (-5,)], abs, lambda r: r.a.__abs__(), _abs)
        most = 2**bits - 1
        unsigned = f"UInt{bits}"
        rows = [(most, 1), (0, 1), (most, most), (7, 2), (5, 7), (5, 0)]
        yield from _signs("whole numbers", (unsigned, unsigned), rows)
        yield Case("whole numbers", "-a", (unsigned,), [(most,), (5,), (0,)], operator.neg, lambda r: -r.a)


def _abs(r: Any) -> Any:
    return r.a.abs()


def _mixed() -> Iterator[Case]:
    rows: list[Row] = [(2**64 - 1, -1), (2**63, -1), (0, -1), (2**64 - 1, 2**63 - 1), (7, -2), (2**63, -(2**63))]
    yield from _signs("UInt64 with Int64", ("UInt64", "Int64"), rows)
    rows = [(255, -128), (0, -1), (255, 127), (7, -2)]
    yield from _signs("UInt64 with Int64", ("UInt8", "Int8"), rows, "+ - * // % <")
    rows = [(2**53 + 1, 2.0**53), (2**63 - 1, 2.0**63), (-1, -0.5), (0, -0.0), (3, NAN)]
    yield from _signs("whole numbers with floats", ("Int64", "Float64"), rows, "+ * / < ==")
    rows = [(2**64 - 1, 2.0**64), (1, 0.5)]
    yield from _signs("whole numbers with floats", ("UInt64", "Float64"), rows, "+ < ==")


def _bits_and_powers() -> Iterator[Case]:
    group = "bits and powers"
    rows: list[Row] = [(1, 62), (1, 63), (1, 64), (-8, 1), (3, 0)]
    yield Case(group, "<<", ("Int64", "Int64"), rows, operator.lshift, lambda r: r.a << r.b)
    yield Case(group, ">>", ("Int64", "Int64"), [*rows, (-1, 63)], operator.rshift, lambda r: r.a >> r.b)
    yield Case(group, "<<", ("UInt8", "UInt8"), [(1, 7), (1, 8), (255, 1)], operator.lshift, lambda r: r.a << r.b)
    rows = [(-1, 255), (-128, 127), (0, 0)]
    yield Case(group, "&", ("Int64", "Int64"), rows, operator.and_, lambda r: r.a & r.b)
    yield Case(group, "|", ("Int8", "Int64"), rows[1:], operator.or_, lambda r: r.a | r.b)
    yield Case(group, "^", ("Int64", "Int64"), rows, operator.xor, lambda r: r.a ^ r.b)
    yield Case(group, "~", ("Int64",), [(0,), (-1,), (2**63 - 1,)], operator.invert, lambda r: ~r.a)
    yield Case(group, "~", ("UInt8",), [(0,), (255,)], operator.invert, lambda r: ~r.a)
    rows = [(2, 10), (3, 40), (7, 22), (-2, 3), (2, -1), (0, 0), (10, 18)]
    yield Case(group, "**", ("Int64", "Int64"), rows, operator.pow, lambda r: r.a**r.b)


def _with_constants() -> Iterator[Case]:
    group = "numbers with constants"
    sums: list[tuple[str, str, list[Row], Build]] = [
        ("a + 1", "Int8", [(127,), (-128,)], lambda r: r.a + 1),
        ("a + 1000", "Int8", [(127,), (-128,)], lambda r: r.a + 1000),
        ("a + 1", "Int64", [(2**63 - 1,), (0,)], lambda r: r.a + 1),
        ("a - 1", "UInt8", [(0,), (255,)], lambda r: r.a - 1),
        ("a - 1", "UInt64", [(0,), (2**64 - 1,)], lambda r: r.a - 1),
        ("a * 2", "Int64", [(2**62,), (-(2**63),)], lambda r: r.a * 2),
        ("a + 2**64", "Int64", [(0,), (-1,)], lambda r: r.a + 2**64),
        ("a == 2**64 - 1", "Int64", [(-1,), (0,)], lambda r: r.a == 2**64 - 1),
        ("a < -1", "UInt64", [(0,), (2**64 - 1,)], lambda r: r.a < -1),
        ("a // 2", "Int64", [(-7,), (7,)], lambda r: r.a // 2),
        ("a // -2", "Int8", [(-128,), (7,)], lambda r: r.a // -2),
        ("a % -3", "Int64", [(7,), (-7,), (0,)], lambda r: r.a % -3),
        ("a * 0.1", "Int64", [(3,), (2**53 + 1,)], lambda r: r.a * 0.1),
        ("a == 0.5", "Int64", [(0,), (1,)], lambda r: r.a == 0.5),
    ]
    for name, kind, rows, build in sums:
        yield Case(group, name, (kind,), rows, lambda a, f=build: f(_Only(a)), build)


class _Only:
    """A value where a layer has its column `a`."""

    def __init__(self, a: Any) -> None:
        self.a = a


def _floats() -> Iterator[Case]:
    rows: list[Row] = [(0.1, 0.2), (1e308, 10.0), (-0.0, 0.0), (NAN, 1.0), (INFINITY, -INFINITY), (5.5, -2.0)]
    rows += [
        (-5.5, 2.0),
        (1.0, 0.0),
        (0.0, -3.0),
        (1e16, 1.0),
        (-1e-20, 3.0),
        (INFINITY, 2.0),
        (3.0, INFINITY),
        (NAN, NAN),
    ]
    yield from _signs("floats", ("Float64", "Float64"), rows)
    rows = [(NAN, NAN), (-0.0, 0.0), (INFINITY, INFINITY), (NAN, 1.0)]
    for sign, function in (("!=", operator.ne), ("<=", operator.le), (">", operator.gt)):
        yield Case("floats", sign, ("Float64", "Float64"), rows, function, lambda r, f=function: f(r.a, r.b))
    three = [(NAN,), (INFINITY,), (0.0,)]
    yield Case("floats", "is_nan", ("Float64",), three, math.isnan, lambda r: r.a.is_nan(), _isnan)
    yield Case("floats", "-a", ("Float64",), [(0.0,), (NAN,), (-INFINITY,)], operator.neg, lambda r: -r.a)
    yield Case("floats", "sqrt", ("Float64",), [(4.0,), (-1.0,), (-0.0,)], math.sqrt, lambda r: r.a.sqrt())
    yield Case("floats", "log", ("Float64",), [(math.e,), (0.0,), (-1.0,)], math.log, lambda r: r.a.log(), _ln)
    yield Case("floats", "exp", ("Float64",), [(0.0,), (710.0,), (-INFINITY,)], math.exp, lambda r: r.a.exp())


def _isnan(r: Any) -> Any:
    return r.a.isnan()


def _ln(r: Any) -> Any:
    return r.a.ln()


def _rounding() -> Iterator[Case]:
    halves: list[Row] = [(0.5,), (1.5,), (2.5,), (-0.5,), (2.675,), (1e300,), (-1.5,)]
    yield Case("rounding", "round", ("Float64",), halves, round, lambda r: r.a.round())
    rows: list[Row] = [(2.675,), (0.125,), (1.005,), (1e300,), (-0.125,), (NAN,)]
    yield Case("rounding", "round, 2", ("Float64",), rows, lambda a: round(a, 2), lambda r: r.a.round(2))
    rows = [(15,), (25,), (-25,), (24,)]
    yield Case("rounding", "round, -1", ("Int64",), rows, lambda a: round(a, -1), lambda r: r.a.round(-1))
    yield Case("rounding", "floor", ("Float64",), [*halves, (NAN,)], math.floor, lambda r: r.a.floor())
    yield Case("rounding", "ceil", ("Float64",), [*halves, (INFINITY,)], math.ceil, lambda r: r.a.ceil())
    rows = [(Decimal("0.25"),), (Decimal("0.35"),), (Decimal("-0.25"),)]
    yield Case("rounding", "round, 1", ("Decimal(9, 2)",), rows, lambda a: round(a, 1), lambda r: r.a.round(1))


def _decimals() -> Iterator[Case]:
    texts = [("1.00", "3.00"), ("-7.50", "2.00"), ("7.50", "-2.00"), ("9999999.99", "9999999.99"), ("0.01", "0.01")]
    texts += [("-0.01", "3.00"), ("1.00", "0.00"), ("1.10", "1.10")]
    rows: list[Row] = [tuple(map(Decimal, row)) for row in texts]
    yield from _signs("decimals", ("Decimal(9, 2)", "Decimal(9, 2)"), rows)
    yield from _signs("decimals", ("Decimal(18, 4)", "Decimal(9, 2)"), rows)
    large = [("1e27", "1e27"), ("0.0000000001", "0.0000000001"), ("1e27", "-9e27"), ("9e27", "9e27"), ("2", "3")]
    rows = [tuple(map(Decimal, row)) for row in large]
    yield from _signs("decimals", ("Decimal(38, 10)", "Decimal(38, 10)"), rows)
    rows = [(Decimal("1.25"), 1), (Decimal("-1.25"), -3), (Decimal("9999999.99"), 2**63 - 1), (Decimal("0.01"), 0)]
    yield from _signs("decimals", ("Decimal(9, 2)", "Int64"), rows)
    more = Decimal("0.125")
    rows = [(Decimal("1.25"),), (Decimal("-0.01"),)]
    yield Case("decimals", "a + 0.125", ("Decimal(9, 2)",), rows, lambda a: a + more, lambda r: r.a + more)
    yield Case("decimals", "a > 0.125", ("Decimal(9, 2)",), rows, lambda a: a > more, lambda r: r.a > more)
    yield Case("decimals", "a * 3", ("Decimal(9, 2)",), [(Decimal("9999999.99"),)], lambda a: a * 3, lambda r: r.a * 3)


def _fitting(low: int, high: int) -> Any:
    def fit(value: Any) -> int:
        number = int(value)
        if not low <= number <= high:
            raise OverflowError
        return number

    return fit


def _quantized(value: Any) -> Decimal:
    number = Decimal(value).quantize(Decimal("0.01"), context=EXACT)
    if abs(number) >= 10**7:
        raise OverflowError
    return number


def _casts() -> Iterator[Case]:
    """What does not fit is to be refused; `int` cuts the digits of a float, as Python does."""
    long = [(5,), (128,), (-129,), (300,), (127,)]
    texts = [("12",), ("x",), ("",), (" 12",), ("1e3",), ("99999999999999999999",), ("-5",), ("1.5",)]
    wholes = [(1.0,), (1.5,), (-1.5,), (NAN,), (INFINITY,), (1e19,), (-0.0,)]
    decimals = [("0.12",), ("0.125",), ("x",), ("12345678.9",), ("-1",)]
    words = [("1.5",), ("x",), ("",), ("nan",), ("inf",), ("1e400",), ("-0.0",)]
    int64, int8 = _fitting(-(2**63), 2**63 - 1), _fitting(-128, 127)
    cents: list[Row] = [(Decimal("1.00"),), (Decimal("1.50"),), (Decimal("-1.50"),)]
    wanted: list[tuple[str, list[Row], str, str, Any]] = [
        ("Int64", long, "Int8", "int8", int8),
        ("Int64", [(-1,), (5,)], "UInt64", "uint64", _fitting(0, 2**64 - 1)),
        ("UInt64", [(2**63,), (5,)], "Int64", "int64", int64),
        ("Float64", wholes, "Int64", "int64", int64),
        ("Decimal(9, 2)", cents, "Int64", "int64", int64),
        ("String", texts, "Int64", "int64", int64),
        ("String", [("300",), ("-128",), ("1 ",)], "Int8", "int8", int8),
        ("String", words, "Float64", "float64", float),
        ("String", decimals, "Decimal(9, 2)", "decimal(9, 2)", _quantized),
        ("Float64", [(0.5,), (0.125,), (1e10,), (NAN,)], "Decimal(9, 2)", "decimal(9, 2)", _quantized),
        ("Decimal(18, 4)", [(Decimal("1.25"),), (Decimal("1.2345"),)], "Decimal(9, 2)", "decimal(9, 2)", _quantized),
        ("Int64", [(2**53,), (2**53 + 1,)], "Float64", "float64", float),
        ("Int64", [(-(2**63),), (0,)], "String", "string", str),
        ("Float64", [(1.0,), (0.1,), (1e22,), (NAN,), (-0.0,)], "String", "string", str),
        ("Decimal(9, 2)", [(Decimal("1.50"),), (Decimal("-0.01"),)], "String", "string", str),
    ]
    for given, rows, kind, name, python in wanted:
        ours, theirs = (lambda r, k=kind: r.a.cast(k)), (lambda r, k=name: r.a.cast(k))
        yield Case("casts", f"cast to {kind}", (given,), rows, python, ours, theirs)
