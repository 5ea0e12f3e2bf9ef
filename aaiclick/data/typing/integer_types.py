"""Integer types: width, sign and limits, the type of results in ClickHouse, and SQL for operands of different types."""

from __future__ import annotations

from collections.abc import Sequence

from aaiclick.data.typing.expression_types import CLASSES, Kind, is_decimal, is_null
from aaiclick.data.typing.grammar import Type

ROWS_MAX = 2**62
"""More rows than any query reads."""


class Whole:
    """The width and sign of an integer type; Bool counts as 8 bits without a sign."""

    def __init__(self, kind: Type) -> None:
        bare = kind.bare
        self.bits = 8 if bare.name == "Bool" else bare.bits
        self.signed = bare.name.startswith("Int")

    @property
    def signed_bits(self) -> int:
        """The width of the signed type that holds all values of this one."""
        return self.bits if self.signed else 2 * self.bits


def named(bits: int, signed: bool) -> Type:
    return Type(f"{'' if signed else 'U'}Int{bits}")


def widened(sign: str, kinds: Sequence[Kind]) -> Type:
    """Return the type that ClickHouse gives a sum, difference or product of integers."""
    numbers = [Whole(kind) for kind in kinds if kind is not None]
    bits = max(number.bits for number in numbers)
    signed = sign == "-" or any(number.signed for number in numbers)
    return named(2 * bits if bits < 64 else bits, signed)


def null_or(text: str, kinds: Sequence[Kind]) -> str:
    """Return SQL that is NULL where an argument is, and evaluates `text` elsewhere.

    The value that ClickHouse stores under a NULL is arbitrary, so it must not be evaluated.
    """
    places = [f"{{{number}}}" for number, kind in enumerate(kinds) if is_null(kind)]
    for place in places:
        text = text.replace(place, f"assumeNotNull({place})")
    return f"if({' OR '.join(f'isNull({place})' for place in places)}, NULL, {text})" if places else text


def alike(text: str, kinds: Sequence[Kind], numbers: Sequence[Whole]) -> tuple[Type, str]:
    """Return a signed type that holds both operands, and the SQL with them cast to it.

    ClickHouse divides integers of different signedness as if both had the same one.
    """
    kind = named(min(256, max(number.signed_bits for number in numbers)), True)
    for place, (given, number) in enumerate(zip(kinds, numbers, strict=True)):
        if given is not None and given.bare != kind:
            cast = f"to{kind}({{{place}}})" if number.signed_bits <= 256 else f"accurateCast({{{place}}}, '{kind}')"
            text = text.replace(f"{{{place}}}", cast)
    return kind, null_or(text, kinds) if "accurateCast" in text else text


def bits_of(kind: Type) -> int:
    """Return the width of a decimal type."""
    return next(bits for digits, bits in CLASSES.items() if kind.bare.numbers[0] <= digits)


def limit_of(kind: Type) -> int:
    """Return a bound of the absolute values of a type of whole numbers, or of decimals without their point.

    ClickHouse keeps a decimal as a whole number, and lets it have more digits than its type says if its bits hold them.
    """
    if is_decimal(kind):
        return int(2 ** (bits_of(kind) - 1))
    number = Whole(kind)
    return int(2 ** (number.bits - number.signed))
