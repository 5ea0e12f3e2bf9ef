"""Whole numbers by their types: width and sign, what ClickHouse makes of two, and words of one type for both."""

from __future__ import annotations

from collections.abc import Sequence

from aaiclick.data.typing.expression_types import Kind, is_null
from aaiclick.data.typing.grammar import Type


class Whole:
    """What matters of a whole number's type."""

    def __init__(self, kind: Type) -> None:
        bare = kind.bare
        self.bits = 8 if bare.name == "Bool" else bare.bits
        self.signed = bare.name.startswith("Int")

    @property
    def signed_bits(self) -> int:
        """The width of the signed type that holds all of it."""
        return self.bits if self.signed else 2 * self.bits


def named(bits: int, signed: bool) -> Type:
    return Type(f"{'' if signed else 'U'}Int{bits}")


def widened(sign: str, kinds: Sequence[Kind]) -> Type:
    """The type that ClickHouse gives a sum or product of whole numbers."""
    numbers = [Whole(kind) for kind in kinds if kind is not None]
    bits = max(number.bits for number in numbers)
    signed = sign == "-" or any(number.signed for number in numbers)
    return named(2 * bits if bits < 64 else bits, signed)


def null_or(text: str, kinds: Sequence[Kind]) -> str:
    """Without looking at what lies under a NULL, which may be anything."""
    places = [f"{{{number}}}" for number, kind in enumerate(kinds) if is_null(kind)]
    for place in places:
        text = text.replace(place, f"assumeNotNull({place})")
    return f"if({' OR '.join(f'isNull({place})' for place in places)}, NULL, {text})" if places else text


def alike(text: str, kinds: Sequence[Kind], numbers: Sequence[Whole]) -> tuple[Type, str]:
    """Both as the signed type that holds them: ClickHouse divides others as if they had the same sign."""
    kind = named(min(256, max(number.signed_bits for number in numbers)), True)
    for place, (given, number) in enumerate(zip(kinds, numbers, strict=True)):
        if given is not None and given.bare != kind:
            cast = f"to{kind}({{{place}}})" if number.signed_bits <= 256 else f"accurateCast({{{place}}}, '{kind}')"
            text = text.replace(f"{{{place}}}", cast)
    return kind, null_or(text, kinds) if "accurateCast" in text else text
