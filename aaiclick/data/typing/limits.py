"""How large the numbers of a type can be, by the bits in which ClickHouse keeps them."""

from __future__ import annotations

from aaiclick.data.typing.expression_types import CLASSES, is_decimal
from aaiclick.data.typing.grammar import Type
from aaiclick.data.typing.integer_types import Whole

ROWS_MAX = 2**62
"""More rows than any query reads."""


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
