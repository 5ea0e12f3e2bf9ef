"""Functions of lists; access to elements of lists, texts, maps and records."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from aaiclick.data.operations.additions import is_list, is_text
from aaiclick.data.operations.operation import FIRST, Applied, Operation, check_kind, condition, gives, made
from aaiclick.data.operations.row_functions.texts import LONG, braced
from aaiclick.data.sql import quoting
from aaiclick.data.typing.expression_types import (
    FLOAT,
    TEXT,
    Kind,
    Worded,
    decimal,
    is_decimal,
    is_float,
    is_whole,
    maybe,
)
from aaiclick.data.typing.grammar import Type
from aaiclick.data.typing.integer_types import Whole, named
from aaiclick.errors import InputError
from aaiclick.urls import shown

Said = Callable[[Type], str]

_SLICE = "substringUTF8({0}, if({1} < 0, greatest({1}, -toInt64(lengthUTF8({0})) - ({0} = '')), {1} + 1), {2})"
"""`count` characters from an index, which may be negative: Python's text[start:][:count]."""

_LIST_SLICE = "arraySlice({0}, if({1} < 0, greatest({1}, -toInt64(length({0})) - empty({0})), {1} + 1), {2})"
_KNOWN = "arrayMap(x -> assumeNotNull(x), arrayFilter(x -> isNotNull(x), {0}))"
_PLACE = "(toInt64(nullIf(indexOf({0}, {1}), 0)) - 1)"


def element(kind: Kind) -> Type | None:
    """Return the element type of a list type; None for an unknown type, or one that is not a list."""
    return kind.bare.parts[0] if kind is not None and is_list(kind) else None


def of_list(
    name: str, plain: str, words: Said, kind: Callable[[Type], Kind], arguments: int = 1, times: slice = slice(0)
) -> Operation:
    """Return a list function whose SQL depends on the element type; types known to be no lists raise InputError."""

    def typing(kinds: Sequence[Kind]) -> Worded | None:
        first = kinds[0]
        if first is None:
            return None
        if not is_list(first):
            hint = "split(separator) makes a list of a text." if is_text(first) else ""
            raise InputError(field=name, value=str(first), rule="it needs lists", hint=hint)
        inner = first.bare.parts[0]
        return Worded(words(inner), kind(inner))

    return Operation(plain, arguments, arguments, times=times, apart=arguments > 1, typed=typing, timed=typing)


def _same_words(words: str) -> Said:
    return lambda _: words


def _list(inner: Type) -> Kind:
    return Type("Array", (inner,))


# ---------------------------------------------------------------- aggregates of each list


def _sum_words(inner: Type) -> str:
    kind, scale = _sum_kind(inner), inner.bare.numbers[-1] if is_decimal(inner) else 0
    if is_float(inner):
        return "arraySum(x -> ifNull(toFloat64(x), 0), {0})"
    if is_decimal(inner):
        bits = 128 if inner.bare.numbers[0] <= 18 else 256
        return f"arraySum(x -> toDecimal{bits}(ifNull(x, 0), {scale}), {{0}})"
    if not is_whole(inner) or Whole(inner).bits > 128:
        rule = "it needs numbers of up to 128 bits"
        raise InputError(field="list_sum", value=f"Array({inner})", rule=rule, hint="")
    number = Whole(inner)
    wide = named(max(2 * number.bits, 128), number.signed)
    return f"accurateCast(arraySum(x -> to{wide}(ifNull(x, 0)), {{0}}), '{kind}')"


def _sum_kind(inner: Type) -> Kind:
    if is_whole(inner):
        return named(max(64, Whole(inner).bits), Whole(inner).signed)
    if is_decimal(inner):
        return decimal(38 if inner.bare.numbers[0] <= 18 else 76, inner.bare.numbers[1])
    return FLOAT


def _mean_words(inner: Type) -> str:
    if not (is_whole(inner) or is_float(inner) or is_decimal(inner)):
        raise InputError(field="list_mean", value=f"Array({inner})", rule="it needs numbers", hint="")
    known = _KNOWN.replace("assumeNotNull(x)", "toFloat64(assumeNotNull(x))")
    return f"arrayMap(k -> if(empty(k), nan, arrayAvg(k)), [{known}])[1]"


def _extreme(sort: str) -> Said:
    def words(inner: Type) -> str:
        known = f"arrayFilter(x -> isNotNull(x){' AND NOT isNaN(x)' if is_float(inner) else ''}, {{0}})"
        if (found := maybe(inner)) is not None and found.is_nullable:
            return f"arrayElementOrNull({sort}({known}), 1)"
        raise InputError(field="list", value=f"Array({inner})", rule="these values have no order", hint="")

    return words


# ---------------------------------------------------------------- sorted, distinct and joined


def list_sort(descending: bool = False) -> Operation:
    """Sort each list; NaN and None come last."""
    words = "arraySort({0})"
    if descending:
        words = "arraySort((x, place) -> place, {0}, arrayMap(p -> -p, arrayEnumerateDense(arraySort({0}))))"

    def said(inner: Type) -> str:
        if not descending:
            return words
        odd = "isNull(x)" + (" OR isNaN(x)" if is_float(inner) else "")
        return (
            f"arrayConcat(arrayReverseSort(arrayFilter(x -> NOT ({odd}), {{0}})), "
            f"arraySort(arrayFilter(x -> {odd}, {{0}})))"
        )

    return of_list("list_sort", "arraySort({0})", said, _list, times=FIRST)


def _unique(inner: Type) -> str:
    if not inner.is_nullable:
        return "arrayDistinct({0})"
    return "arrayConcat(arrayDistinct({0}), if(has({0}, NULL), [NULL], []))"


def list_join(separator: str = "") -> Operation:
    mark = braced(check_kind("list_join", separator, str, "a separator must be a text"))

    def words(inner: Type) -> str:
        if is_text(inner):
            return f"arrayStringConcat({{0}}, {mark})"
        return f"arrayStringConcat(arrayMap(x -> toString(x), {{0}}), {mark})"

    return of_list("list_join", f"arrayStringConcat({{0}}, {mark})", words, lambda _: TEXT)


def _innermost(kind: Type) -> Type:
    return _innermost(kind.bare.parts[0]) if is_list(kind) else kind


# ---------------------------------------------------------------- elements and slices


def get(key: object) -> Applied | Operation:
    """Return the element at an index of a list or a text, or the value under a name.

    Indices count from 0, or from the end if negative. The result is None where there is no element; if the element is a
    list or a map, which cannot be NULL, that raises an error.
    """
    if isinstance(key, str):
        return _named(key)
    if isinstance(key, int) and not isinstance(key, bool):
        return Applied(_at(str(key + 1 if key >= 0 else f"({key})"), 1, key), ())
    return Applied(_at("({1} + ({1} >= 0))", 2, None), (key,))


def _at(place: str, arguments: int, key: int | None) -> Operation:
    plain = f"arrayElementOrNull({{0}}, {place})"

    def typing(kinds: Sequence[Kind]) -> Worded | None:
        kind = kinds[0]
        if kind is None:
            return None
        if is_list(kind):
            return _element_at(place, kind.bare.parts[0])
        if is_text(kind):
            size = "toInt64(lengthUTF8({0}))"
            words = f"if({place} > {size} OR {place} < -{size}, NULL, substringUTF8({{0}}, {place}, 1))"
            return Worded(words, maybe(TEXT))
        if kind.bare.name == "Tuple" and key is not None:
            return _part(kind, key)
        if kind.bare.name == "Map":
            return _under(
                place if key is None else quoting.literal(key), kind, "{1}" if key is None else quoting.literal(key)
            )
        raise InputError(field="get", value=str(kind), rule="it needs lists, texts, maps or records", hint="")

    return Operation(plain, arguments, arguments, times=FIRST, apart=True, typed=typing, timed=typing)


def _element_at(place: str, inner: Type) -> Worded:
    found = maybe(inner)
    if found is not None and found.is_nullable:
        return Worded(f"arrayElementOrNull({{0}}, {place})", found)
    size, told = (
        "toInt64(length({0}))",
        quoting.text("get: a list has no such element, and what it holds cannot be None"),
    )
    check = f"throwIf({place} > {size} OR {place} < -{size}, {told})"
    return Worded(f"if({check} = 0, arrayElement({{0}}, {place}), arrayElement({{0}}, {place}))", inner)


def _part(kind: Type, key: int | str) -> Worded:
    labels, parts = kind.bare.labels, kind.bare.parts
    if isinstance(key, str):
        if key not in labels:
            rule = f"its names are {', '.join(labels)}" if labels else "its parts have places, and no names"
            raise InputError(field="get", value=shown(repr(key)), rule=rule, hint="")
        place = labels.index(key)
    else:
        place = key + len(parts) if key < 0 else key
        if not 0 <= place < len(parts):
            raise InputError(field="get", value=str(key), rule=f"the record has {len(parts)} parts", hint="")
    return Worded(f"tupleElement({{0}}, {place + 1})", parts[place])


def _under(key: str, kind: Type, name: str) -> Worded:
    found, value = maybe(kind.bare.parts[1]), f"arrayElement({{0}}, {name})"
    if found is not None and found.is_nullable:
        return Worded(f"if(mapContains({{0}}, {name}), {value}, NULL)", found)
    told = quoting.text("get: a map has no such key, and what it holds cannot be None")
    return Worded(f"if(throwIf(NOT mapContains({{0}}, {name}), {told}) = 0, {value}, {value})", kind.bare.parts[1])


def _named(key: str) -> Operation:
    name = braced(key)

    def typing(kinds: Sequence[Kind]) -> Worded | None:
        (kind,) = kinds
        if kind is None:
            return None
        if kind.bare.name == "Tuple":
            return _part(kind, key)
        if kind.bare.name == "Map":
            return _under(name, kind, name)
        hint = f"For a text in JSON, use json({key!r})." if is_text(kind) else "A list's elements have places: get(0)."
        raise InputError(field="get", value=f"{key!r} of {kind}", rule="only maps and records have names", hint=hint)

    return Operation(f"arrayElement({{0}}, {name})", times=FIRST, typed=typing, timed=typing)


def part(start: int | None = None, stop: int | None = None) -> Operation:
    """Return the slice [start:stop] of lists and texts, as in Python; texts are counted in characters."""
    for place in (start, stop):
        if place is not None:
            check_kind("part", place, int, "a place must be a whole number")

    def words(size: str, cut: str) -> str:
        first, last = (_bounded(place, default, size) for place, default in ((start, "0"), (stop, size)))
        return f"{cut}({{0}}, {first} + 1, greatest({last} - {first}, 0))"

    texts = words("toInt64(lengthUTF8({0}))", "substringUTF8")

    def typing(kinds: Sequence[Kind]) -> Worded | None:
        (kind,) = kinds
        if is_list(kind):
            return Worded(words("toInt64(length({0}))", "arraySlice"), kind)
        return Worded(texts, kind)

    return Operation(texts, times=FIRST, typed=typing, timed=typing)


def _bounded(place: int | None, default: str, size: str) -> str:
    if place is None:
        return default
    return f"least({place}, {size})" if place >= 0 else f"greatest({size} - {-place}, 0)"


def _sliced(kinds: Sequence[Kind]) -> Worded | None:
    kind = kinds[0]
    return (
        Worded(_LIST_SLICE, kind)
        if is_list(kind)
        else Worded(_SLICE, TEXT if kind == TEXT and None not in kinds else None)
    )


def _reversed(kinds: Sequence[Kind]) -> Worded | None:
    (kind,) = kinds
    return Worded("arrayReverse({0})" if is_list(kind) else "reverseUTF8({0})", kind)


_NUMBERS = "[[3, 1, 2], []]"

LISTS = {
    "size": gives("toInt64(length({0}))", LONG).telling("how many elements", _NUMBERS, "size()", "[3, 0]"),
    "get": made(
        get,
        "the element at a place of a list (negative: from the end), or the value under a name of a map or record; "
        'None if there is none. `col("a")[0]` is the same',
        _NUMBERS,
        "get(-1)",
        "[2, None]",
    ),
    "part": made(
        part,
        'Python\'s `[start:stop]` of lists and texts; `col("a")[1:]` is the same',
        _NUMBERS,
        "part(1)",
        "[[1, 2], []]",
    ),
    "slice": Operation(_SLICE, 3, 3, times=FIRST, typed=_sliced, timed=_sliced).telling(
        "this many characters or elements, from a place on", '["abcdef"]', "slice(-3, 2)", '["de"]'
    ),
    "reverse": Operation("reverseUTF8({0})", times=FIRST, typed=_reversed, timed=_reversed).telling(
        "the text or list in reverse order", '["été!"]', "reverse()", '["!été"]'
    ),
    "has": condition("has({0}, {1})", 2).telling("whether the list contains this", _NUMBERS, "has(3)", "[True, False]"),
    "has_any": condition("hasAny({0}, {1})", 2).telling(
        "whether the list contains one of these", _NUMBERS, "has_any([3, 9])", "[True, False]"
    ),
    "has_all": condition("hasAll({0}, {1})", 2).telling(
        "whether the list contains all of these", _NUMBERS, "has_all([3, 1])", "[True, False]"
    ),
    "index_of": of_list("index_of", _PLACE, _same_words(_PLACE), lambda _: maybe(LONG), 2).telling(
        "the first place of this; None if it is not there", _NUMBERS, "index_of(2)", "[2, None]"
    ),
    "list_count": of_list(
        "list_count", "toInt64(countEqual({0}, {1}))", _same_words("toInt64(countEqual({0}, {1}))"), lambda _: LONG, 2
    ).telling("how often the list contains this", "[[1, 1, 2]]", "list_count(1)", "[2]"),
    "list_sum": of_list("list_sum", "arraySum({0})", _sum_words, _sum_kind).telling(
        "the sum of each list, without None; refused beyond 64 bits", _NUMBERS, "list_sum()", "[6, 0]"
    ),
    "list_mean": of_list("list_mean", "arrayAvg({0})", _mean_words, lambda _: FLOAT).telling(
        "the mean of each list, without None; NaN if it is empty", _NUMBERS, "list_mean()", "[2.0, nan]"
    ),
    "list_min": of_list("list_min", "arrayMin({0})", _extreme("arraySort"), maybe, times=FIRST).telling(
        "the least element, without None and NaN; None if there is none", _NUMBERS, "list_min()", "[1, None]"
    ),
    "list_max": of_list("list_max", "arrayMax({0})", _extreme("arrayReverseSort"), maybe, times=FIRST).telling(
        "the greatest element, without None and NaN; None if there is none", _NUMBERS, "list_max()", "[3, None]"
    ),
    "list_sort": made(
        list_sort,
        "each list sorted; NaN and None at the end",
        _NUMBERS,
        "list_sort(descending=True)",
        "[[3, 2, 1], []]",
    ),
    "list_unique": of_list("list_unique", "arrayDistinct({0})", _unique, _list, times=FIRST).telling(
        "each value once, in order of appearance; None at the end", "[[2, 1, 2]]", "list_unique()", "[[2, 1]]"
    ),
    "list_join": made(
        list_join, "the elements joined into one text, without None", '[["a", "b"]]', 'list_join("-")', '["a-b"]'
    ),
    "list_zip": Operation("arrayZip({0}, {1})", 2, 2, apart=True).telling(
        "pairs of the elements of two lists of the same length",
        '{"a": [[1, 2]], "b": [["x", "y"]]}',
        'col("a").list_zip(col("b"))',
        '[[(1, "x"), (2, "y")]]',
    ),
    "flatten": of_list(
        "flatten",
        "arrayFlatten({0})",
        _same_words("arrayFlatten({0})"),
        lambda inner: Type("Array", (_innermost(inner),)),
        times=FIRST,
    ).telling("lists of lists flattened into one", "[[[1], [2, 3]]]", "flatten()", "[[1, 2, 3]]"),
}
