"""Functions that apply a Python function to the elements of lists: `each(lambda x: x * 2)`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

from aaiclick.data.operations.additions import is_list
from aaiclick.data.operations.operation import FIRST, Applied, Body, Operation, made
from aaiclick.data.typing.expression_types import BOOL, Kind, Worded
from aaiclick.data.typing.grammar import Type
from aaiclick.errors import InputError
from aaiclick.urls import shown

NESTED: ContextVar[int] = ContextVar("aaiclick_elements", default=0)
"""The nesting depth of element functions in this context, which gives each its own lambda variable."""

_IS_TRUE = "ifNull(toBool({1}), false)"


def _of_each(name: str, words: str, kind: Callable[[Type, Kind], Kind], **told: Any) -> Callable[..., Applied]:
    def make(function: Callable[[Any], Any]) -> Applied:
        if not callable(function):
            hint = f"Write {name}(lambda x: …), with an expression of x."
            raise InputError(field=name, value=shown(repr(function)), rule="it must be a function", hint=hint)
        element = f"aai_e{NESTED.get()}"
        text = words.replace("{x}", element)

        def typing(kinds: Sequence[Kind]) -> Worded | None:
            first = kinds[0]
            if first is None:
                return None
            if not is_list(first):
                raise InputError(field=name, value=str(first), rule="it needs lists", hint="")
            return Worded(text, kind(first.bare, kinds[1]))

        operation = Operation(text, 2, 2, apart=True, typed=typing, timed=typing, element=element, **told)
        return Applied(operation, (Body(function, element),))

    return make


def _mapped(_: Type, body: Kind) -> Kind:
    return None if body is None else Type("Array", (body,))


ELEMENTS = {
    "each": made(
        _of_each("each", "arrayMap({x} -> {1}, {0})", _mapped, times=slice(1, None)),
        "the result of a function for each element: an expression of the element, constants and other columns",
        '{"a": [[1, 2], []], "k": [10, 20]}',
        'col("a").each(lambda x: x * 2 + col("k"))',
        "[[12, 14], []]",
    ),
    "list_where": made(
        _of_each("list_where", f"arrayFilter({{x}} -> {_IS_TRUE}, {{0}})", lambda given, _: given, times=FIRST),
        "the elements for which a function is true",
        "[[1, 2, 3], []]",
        "list_where(lambda x: x > 1)",
        "[[2, 3], []]",
    ),
    "list_any": made(
        _of_each("list_any", f"toBool(arrayExists({{x}} -> {_IS_TRUE}, {{0}}))", lambda _, __: BOOL, truth=True),
        "whether the function is true for any element",
        "[[1, 2, 3], []]",
        "list_any(lambda x: x > 2)",
        "[True, False]",
    ),
    "list_all": made(
        _of_each("list_all", f"toBool(arrayAll({{x}} -> {_IS_TRUE}, {{0}}))", lambda _, __: BOOL, truth=True),
        "whether the function is true for all elements; None is not true",
        "[[1, 2, 3], []]",
        "list_all(lambda x: x > 2)",
        "[False, True]",
    ),
}
