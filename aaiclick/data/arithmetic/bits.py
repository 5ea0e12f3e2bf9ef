"""SQL for `& | ^ ~ << >>` of whole numbers, by the operands' types: results as in Python, or an error."""

from __future__ import annotations

from collections.abc import Sequence

from aaiclick.data.arithmetic.overflow import BEYOND
from aaiclick.data.sql import quoting
from aaiclick.data.typing.expression_types import BYTE, Kind, Typing, Worded, is_whole, like
from aaiclick.data.typing.integer_types import Whole, alike, named, widened


def shifted(kinds: Sequence[Kind]) -> Worded | None:
    """Return the SQL of `<<`, which raises an error where bits would be lost; None if an operand is no whole number."""
    if not all(map(is_whole, kinds)) or kinds[0] is None:
        return None
    number, made = Whole(kinds[0]), "bitShiftLeft({0}, {1})"
    lost = f"{{1}} < 0 OR {{1}} >= {number.bits} OR bitShiftRight({made}, {{1}}) != {{0}}"
    told = quoting.text(BEYOND.format("a number shifted to the left"))
    kind = like(widened("+", (named(number.bits, number.signed), BYTE)), *kinds)
    return Worded(f"({made} + throwIf(ifNull({lost}, 0), {told}))", kind)


def wrapped_shifted(kinds: Sequence[Kind]) -> Worded | None:
    """Return the SQL of `<<` unchecked, for `wrapping()`: lost bits are dropped."""
    return Worded("bitShiftLeft({0}, {1})")


def bitwise(function: str) -> Typing:
    """Return the typing of `&`, `|` or `^`; if only one operand is signed, the result is of a signed type for both."""

    def words(kinds: Sequence[Kind]) -> Worded | None:
        plain = f"{function}({{0}}, {{1}})"
        if not all(map(is_whole, kinds)):
            return Worded(plain)
        numbers = [Whole(kind) for kind in kinds if kind is not None]
        if len({number.signed for number in numbers}) > 1:
            kind, text = alike(plain, kinds, numbers)
            return Worded(text, like(kind, *kinds))
        return Worded(plain, like(named(max(number.bits for number in numbers), numbers[0].signed), *kinds))

    return words


def bits_kept(text: str) -> Typing:
    """Return the typing of `~` or `>>`: the result is as wide as the operand."""

    def words(kinds: Sequence[Kind]) -> Worded | None:
        if not all(map(is_whole, kinds)) or kinds[0] is None:
            return Worded(text)
        number = Whole(kinds[0])
        return Worded(text, like(named(number.bits, number.signed), *kinds))

    return words
