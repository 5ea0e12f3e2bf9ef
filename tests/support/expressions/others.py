"""Random expressions of floats, truths, texts and times."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

from aaiclick.data.typing.expression_types import Kind
from aaiclick.data.typing.grammar import Type
from tests.support.expressions.maker import MOMENTS, OLD_DAYS, REFUSED, SORTS, TEXTS, Apart, Maker, Node
from tests.support.expressions.numbers import binary, either, extreme

# ---------------------------------------------------------------- floats


def is_float(kind: Type) -> bool:
    return kind.name.startswith("Float")


def _over(kind: Kind, kinds: Any, a: float, b: float) -> float:
    a, b = float(a), float(b)
    if b:
        return a / b
    if a == 0 or a != a:
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1, b)


def _modulo(kind: Kind, kinds: Any, a: float, b: float) -> Any:
    a, b = float(a), float(b)
    return REFUSED if b == 0 or abs(a / b) >= 2**53 else a % b


def _floor(kind: Kind, kinds: Any, a: float, b: float) -> Any:
    """Rounded down exactly, an eighth of it; Python's own may be off by one where the quotient is long."""
    a, b = float(a), float(b)
    if b == 0 or not abs(a / b) < 2**53:
        return REFUSED
    if math.isinf(b):
        return -0.125 if a and (a < 0) != (b < 0) else 0.0
    return Fraction(a) // Fraction(b) / 8.0


def _as_floats(compute: Any) -> Any:
    return lambda kind, kinds, a, b: compute(float(a), float(b))


FLOAT_SIGNS = [
    binary("+", lambda a, b: a + b, _as_floats(lambda a, b: a + b)),
    binary("-", lambda a, b: a - b, _as_floats(lambda a, b: a - b)),
    binary("*", lambda a, b: a * b, _as_floats(lambda a, b: a * b)),
    binary("/", lambda a, b: a / b, _over),
    binary("%", lambda a, b: a % b, _modulo),
    ("({0} // {1} / 8)", lambda a, b: a // b / 8, _floor),
]
FLOAT_CONSTANTS = [0.0, -0.0, 0.5, -2.0, 1e300, math.inf, math.nan]


def _rounded(compute: Any) -> Any:
    def model(kind: Kind, kinds: Any, a: float) -> float:
        return a if not math.isfinite(a) else math.copysign(float(compute(a)), a)

    return model


FLOAT_FUNCTIONS = [
    ("(-{0})", lambda a: -a, lambda kind, kinds, a: -a),
    ("abs({0})", abs, lambda kind, kinds, a: abs(a)),
    ("{0}.floor()", lambda a: a.floor(), _rounded(math.floor)),
    ("{0}.ceil()", lambda a: a.ceil(), _rounded(math.ceil)),
    ("{0}.round()", lambda a: a.round(), _rounded(round)),
    ("{0}.sqrt()", lambda a: a.sqrt(), lambda kind, kinds, a: math.sqrt(a) if a >= 0 else math.nan),
    ("{0}.fill_nan(1.5)", lambda a: a.fill_nan(1.5), lambda kind, kinds, a: 1.5 if a != a else a),
    (
        "{0}.sign()",
        lambda a: a.sign(),
        lambda kind, kinds, a: a if a != a else float((a > 0) - (a < 0)),
    ),
]


def _floats(maker: Maker, depth: int) -> Node:
    chance = maker.chance
    if depth == 0:
        return maker.constant(FLOAT_CONSTANTS) if chance.random() < 0.2 else maker.column(is_float)
    inner = maker.of("float", depth - 1)
    match chance.randint(0, 8):
        case 0 | 1 | 2 | 3:
            other = maker.of("whole", 0) if chance.random() < 0.3 else maker.of("float", depth - 1)
            return maker.apply(
                *chance.choice(FLOAT_SIGNS), *((other, inner) if chance.random() < 0.3 else (inner, other))
            )
        case 4 | 5:
            told, build, model = chance.choice(FLOAT_FUNCTIONS)
            return maker.apply(told, build, model, inner)
        case 6:
            return extreme(maker, inner, maker.of("float", depth - 1))
        case 7:
            one, other = maker.of("whole", depth - 1), maker.of("whole", 0)
            return maker.apply("({0} / {1})", lambda a, b: a / b, _over, one, other)
    return either(maker, inner, maker.of("float", depth - 1), depth)


# ---------------------------------------------------------------- truths


def is_truth(kind: Type) -> bool:
    return kind.name == "Bool"


def both(kind: Kind, kinds: Any, a: bool | None, b: bool | None) -> bool | None:
    return False if False in (a, b) else None if None in (a, b) else True


def one_of(kind: Kind, kinds: Any, a: bool | None, b: bool | None) -> bool | None:
    return True if True in (a, b) else None if None in (a, b) else False


COMPARED = [
    binary("<", lambda a, b: a < b),
    binary("<=", lambda a, b: a <= b),
    binary(">", lambda a, b: a > b),
    binary(">=", lambda a, b: a >= b),
    binary("==", lambda a, b: a == b),
    binary("!=", lambda a, b: a != b),
]
ALIKE = {"whole": ["whole", "whole", "decimal", "float"], "decimal": ["decimal", "whole"], "float": ["float", "whole"]}
TRUTHS = [True, False]


def _truths(maker: Maker, depth: int) -> Node:
    chance = maker.chance
    if depth == 0:
        return maker.column(is_truth)
    match chance.randint(0, 9):
        case 0 | 1 | 2 | 3:
            sort = chance.choice(["whole", "whole", "decimal", "float", "text", "day", "moment"])
            one = maker.of(sort, depth - 1)
            other = maker.of(chance.choice(ALIKE.get(sort, [sort])), depth - 1)
            return maker.apply(*chance.choice(COMPARED), one, other)
        case 4:
            inner = maker.of("truth", depth - 1)
            return maker.apply("(~{0})", lambda a: ~a, lambda kind, kinds, a: not a, inner)
        case 5:
            sign, build, model = chance.choice(
                [("&", lambda a, b: a & b, both), ("|", lambda a, b: a | b, one_of), ("^", lambda a, b: a ^ b, None)]
            )
            parts = maker.of("truth", depth - 1), maker.of("truth", depth - 1)
            told, build, model = binary(sign, build, model)
            return maker.apply(told, build, model, *parts, strict=sign == "^")
        case 6:
            return _is_in(maker, maker.of(chance.choice(["whole", "decimal", "text", "float"]), depth - 1))
        case 7:
            inner = maker.of(chance.choice(["whole", "text", "decimal", "float", "truth", "day"]), depth - 1)
            return maker.apply(
                "{0}.is_null()",
                lambda a: a.is_null(),
                lambda kind, kinds, a: a is None,
                inner,
                strict=False,
            )
        case 8:
            return _searched(maker, maker.of("text", depth - 1))
    return either(maker, maker.of("truth", depth - 1), maker.of("truth", depth - 1), depth)


def _is_in(maker: Maker, one: Node) -> Node:
    there = [value for value in one.values if value is not None]
    among = maker.chance.sample(there, min(len(there), 2))
    if one.is_constant or one.kind is None or any(isinstance(each, int) and not _is_long(each) for each in among):
        raise Apart

    def model(kind: Kind, kinds: Any, a: Any) -> bool:
        return any(a == each or (a != a and each != each) for each in among)

    return maker.apply(f"{{0}}.isin({among})", lambda a: a.isin(among), model, one)


def _is_long(value: int) -> bool:
    return -(2**63) <= value < 2**64


def _searched(maker: Maker, text: Node) -> Node:
    word = maker.chance.choice(TEXTS)
    name = maker.chance.choice(["startswith", "endswith", "contains"])

    def model(kind: Kind, kinds: Any, a: str) -> bool:
        return word in a if name == "contains" else bool(getattr(a, name)(word))

    return maker.apply(f"{{0}}.{name}({_told(word)})", lambda a: getattr(a, name)(word), model, text)


def _told(word: str) -> str:
    return repr(word).replace("{", "{{").replace("}", "}}")


# ---------------------------------------------------------------- texts


def is_text(kind: Type) -> bool:
    return kind.name == "String"


def _texts(maker: Maker, depth: int) -> Node:
    chance = maker.chance
    if depth == 0:
        return maker.column(is_text)
    inner = maker.of("text", depth - 1)
    match chance.randint(0, 8):
        case 0:
            return maker.apply("{0}.upper()", lambda a: a.upper(), lambda kind, kinds, a: a.upper(), inner)
        case 1:
            return maker.apply("{0}.lower()", lambda a: a.lower(), lambda kind, kinds, a: a.lower(), inner)
        case 2:
            return maker.apply("{0}.strip()", lambda a: a.strip(), lambda kind, kinds, a: a.strip(), inner)
        case 3:
            other = maker.of("text", depth - 1)
            return maker.apply(
                "{0}.join_with({1})", lambda a, b: a.join_with(b), lambda kind, kinds, a, b: a + b, inner, other
            )
        case 4 | 5:
            start, count = chance.randint(-4, 4), chance.randint(0, 4)
            return maker.apply(
                f"{{0}}.slice({start}, {count})",
                lambda a: a.slice(start, count),
                lambda kind, kinds, a: a[start:][:count],
                inner,
            )
        case 6:
            old, new = chance.choice(["a", "X", "é", "%", "\\", "本"]), chance.choice(["", "b", "'", "\\1", "日"])
            return maker.apply(
                f"{{0}}.replace({_told(old)}, {_told(new)})",
                lambda a: a.replace(old, new),
                lambda kind, kinds, a: a.replace(old, new),
                inner,
            )
        case 7:
            number = maker.of("whole", depth - 1)
            return maker.apply(
                "{0}.cast(String)", lambda a: a.cast("Nullable(String)"), lambda kind, kinds, a: str(a), number
            )
    return either(maker, inner, maker.of("text", depth - 1), depth)


# ---------------------------------------------------------------- times


def _days(maker: Maker, depth: int) -> Node:
    if maker.chance.random() < 0.2:
        return maker.constant(OLD_DAYS)
    return maker.column(lambda kind: kind.name in ("Date", "Date32"))


def _moments(maker: Maker, depth: int) -> Node:
    if maker.chance.random() < 0.2:
        return maker.constant(MOMENTS)
    return maker.column(lambda kind: kind.name in ("DateTime", "DateTime64"))


def _in_zone(node: Node) -> ZoneInfo:
    assert node.kind is not None
    return ZoneInfo(node.kind.bare.zone)


PARTS = ["year", "month", "day", "weekday"]
CLOCK = ["hour", "minute", "second"]
FORMS = ["%Y-%m-%d", "%H:%M:%S", "%d.%m.%y %H", "%j"]


def _part_of(name: str, value: Any) -> Any:
    found = getattr(value, name)
    return found() if name == "weekday" else found


def _times(maker: Maker, depth: int) -> Node:
    if depth == 0:
        return maker.of("day", 0)
    chance = maker.chance
    node = maker.of(chance.choice(["day", "moment", "moment"]), 0)
    if node.is_constant or node.kind is None:
        raise Apart
    if node.kind.bare.name.startswith("DateTime"):
        return _of_moment(maker, node, _in_zone(node))
    name = chance.choice(PARTS)
    return maker.apply(f"{{0}}.{name}()", lambda a: getattr(a, name)(), lambda kind, kinds, a: _part_of(name, a), node)


def _of_moment(maker: Maker, node: Node, zone: ZoneInfo) -> Node:
    chance = maker.chance
    match chance.randint(0, 4):
        case 0 | 1:
            name = chance.choice([*PARTS, *CLOCK])
            return maker.apply(
                f"{{0}}.{name}()",
                lambda a: getattr(a, name)(),
                lambda kind, kinds, a: _part_of(name, a.astimezone(zone)),
                node,
            )
        case 2:
            form = chance.choice(FORMS)
            return maker.apply(
                f"{{0}}.strftime({form!r})",
                lambda a: a.strftime(form),
                lambda kind, kinds, a: a.astimezone(zone).strftime(form),
                node,
            )
        case 3:
            other = ZoneInfo(chance.choice(["Asia/Kathmandu", "Pacific/Apia", "UTC"]))
            return maker.apply(
                f"{{0}}.tz_convert({other.key}).strftime('%Y-%m-%d %H:%M')",
                lambda a: a.tz_convert(other.key).strftime("%Y-%m-%d %H:%M"),
                lambda kind, kinds, a: a.astimezone(other).strftime("%Y-%m-%d %H:%M"),
                node,
            )
    return maker.apply("{0}.date()", lambda a: a.date(), lambda kind, kinds, a: a.astimezone(zone).date(), node)


SORTS |= {
    "float": _floats,
    "truth": _truths,
    "text": _texts,
    "time": _times,
    "day": _days,
    "moment": _moments,
}
