"""The operations behind Python's operators, such as `a + b` and `a < b`."""

from __future__ import annotations

from functools import partial

from aaiclick.data.arithmetic import bits
from aaiclick.data.arithmetic import checked as arithmetic
from aaiclick.data.operations import additions
from aaiclick.data.operations.operation import Operation, gives, same_as_first, two
from aaiclick.data.sameness import comparing
from aaiclick.data.typing.expression_types import FLOAT, Typing


def moved(sign: str, typed: Typing, wrapping: Typing) -> Operation:
    """Return `+` or `-`, also for times: they are moved by an amount, and two of them give their difference."""
    return checked(sign)._replace(times=slice(None), cancels=True, typed=typed, timed=typed, wrapping=wrapping)


def checked(sign: str) -> Operation:
    words = f"({{0}} {sign} {{1}})"
    return Operation(words, 2, 2, typed=arithmetic.added(sign), wrapping=arithmetic.wrapped(sign))


def compared(sign: str) -> Operation:
    found = Operation(f"toBool({{0}} {sign} {{1}})", 2, 2, truth=True, compares=True, typed=comparing.compared(sign))
    return found._replace(limited=partial(comparing.compared, sign))


OPERATORS = {
    "add": moved("+", additions.PLUS, additions.WRAPPING_PLUS),
    "sub": moved("-", additions.MINUS, additions.WRAPPING_MINUS),
    "mul": checked("*")._replace(typed=additions.TIMES),
    "truediv": two("({0} / {1})", typed=arithmetic.divided),
    "floordiv": two(arithmetic.FLOOR, typed=arithmetic.floor_divided),
    "mod": two(arithmetic.REMAINDER, typed=arithmetic.remainder),
    "pow": gives("pow({0}, {1})", FLOAT, 2),
    "lt": compared("<"),
    "le": compared("<="),
    "gt": compared(">"),
    "ge": compared(">="),
    "eq": compared("="),
    "ne": compared("!="),
    "and": two("bitAnd({0}, {1})", "toBool({0} AND {1})", bits.bitwise("bitAnd")),
    "or": two("bitOr({0}, {1})", "toBool({0} OR {1})", bits.bitwise("bitOr")),
    "xor": two("bitXor({0}, {1})", "toBool(xor({0}, {1}))", bits.bitwise("bitXor")),
    "lshift": two("bitShiftLeft({0}, {1})", typed=bits.shifted)._replace(wrapping=bits.wrapped_shifted),
    "rshift": two("bitShiftRight({0}, {1})", typed=bits.bits_kept("bitShiftRight({0}, {1})")),
    "neg": Operation("(-{0})", typed=arithmetic.negated, wrapping=arithmetic.wrapped_negated),
    "pos": same_as_first("({0})"),
    "abs": Operation("abs({0})", typed=arithmetic.without_sign),
    "invert": Operation("bitNot({0})", truth_sql="toBool(NOT {0})", typed=bits.bits_kept("bitNot({0})")),
}
"""Operations by the name of Python's operator method, without underscores."""
