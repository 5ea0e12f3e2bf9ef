"""Functions of texts. Lengths and positions count characters, as in Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aaiclick.data.operations.operation import Applied, Operation, check_kind, condition, gives, made
from aaiclick.data.sql import quoting
from aaiclick.data.typing.expression_types import FLOAT, TEXT, Kind, Typing, Worded, is_null, like
from aaiclick.data.typing.grammar import Type
from aaiclick.data.typing.integer_types import null_or
from aaiclick.errors import InputError
from aaiclick.urls import shown

LONG = Type("Int64")

_BLANK = "\\\\s\\\\x0b\\\\x1c-\\\\x1f\\\\x{{85}}\\\\p{{Z}}"
_STRIP = (
    "if(isValidASCII({{0}}), {plain}({{0}}, ' \\t\\n\\r\\x0b\\x0c\\x1c\\x1d\\x1e\\x1f'), "
    "replaceRegexpAll({{0}}, '{pattern}', ''))"
)
"""Strip what Python regards as white space. ASCII texts, the usual case, need no regular expression."""

_SIDES = {"both": ("trimBoth", "^[{0}]+|[{0}]+$"), "left": ("trimLeft", "^[{0}]+"), "right": ("trimRight", "[{0}]+$")}
_REPLACE = "if(throwIf({1} = '', 'replace: the text to find must not be empty') = 0, replaceAll({0}, {1}, {2}), '')"
_OCCURRENCES = (
    "toInt64(if(throwIf({1} = '', 'occurrences: the text to find must not be empty') = 0, "
    "countSubstrings({0}, {1}), 0))"
)
_CASED = "\\\\p{{Lu}}\\\\p{{Ll}}\\\\p{{Lt}}"
_FIRST = "upperUTF8(substringUTF8({0}, 1, 1))"
_CAPITAL = (
    f"concat(substringUTF8({_FIRST}, 1, 1), lowerUTF8(substringUTF8({_FIRST}, 2)), lowerUTF8(substringUTF8({{0}}, 2)))"
)
"""Where the upper case of a character has two letters, the second is put in lower case."""
_TITLE = (
    f"arrayStringConcat(arrayMap(w -> {_CAPITAL.replace('{0}', 'w')}, extractAll({{0}}, '[{_CASED}]+|[^{_CASED}]+')))"
)
_DISTANCE = (
    "toInt64(if(empty({0}) OR empty({1}), greatest(lengthUTF8({0}), lengthUTF8({1})), editDistanceUTF8({0}, {1})))"
)
"""Beside an empty text, ClickHouse's editDistanceUTF8 would count bytes."""

_PREFIX = "if(startsWith({0}, {1}), substringUTF8({0}, lengthUTF8({1}) + 1), {0})"
_SUFFIX = "if(endsWith({0}, {1}), substringUTF8({0}, 1, lengthUTF8({0}) - lengthUTF8({1})), {0})"


def braced(text: str) -> str:
    """Return a text as an SQL literal for a template, with braces doubled."""
    return quoting.text(text).replace("{", "{{").replace("}", "}}")


def known_or_null(sql_text: str, kind: Type) -> Typing:
    """Return a typing for SQL that may throw: it is not evaluated where an argument is NULL."""
    return lambda kinds: None if None in kinds else Worded(null_or(sql_text, kinds), like(kind, *kinds))


def listed(words: str, element: Type = TEXT) -> Operation:
    """Return an operation that makes a list from a text; an empty list for None, since a list cannot be NULL."""

    def typing(kinds: Sequence[Kind]) -> Worded:
        text = f"if(isNull({{0}}), [], {words.replace('{0}', 'assumeNotNull({0})')})"
        return Worded(text if is_null(kinds[0]) else words, Type("Array", (element,)))

    return Operation(words, typed=typing)


def stripped(side: str, name: str) -> Any:
    def make(chars: str | None = None) -> Operation:
        plain, pattern = _SIDES[side]
        if chars is None:
            return _text(_STRIP.format(plain=plain, pattern=pattern.format(_BLANK)))
        check_kind(name, chars, str, "the characters must be a text")
        signs = "".join(f"\\x{{{ord(sign):x}}}" for sign in chars)
        return _text(f"replaceRegexpAll({{0}}, {braced(pattern.format(signs))}, '')") if chars else _text("{0}")

    return make


def _text(words: str) -> Operation:
    return gives(words, TEXT)


def padded(width: int, side: str = "left", fill: str = " ") -> Operation:
    """Pad the text with `fill` to at least `width` characters, on the left, right or both sides."""
    count = _width("pad", width)
    if len(check_kind("pad", fill, str, "the fill must be a text")) != 1:
        raise InputError(field="fill", value=shown(repr(fill)), rule="it must be one character", hint="")
    wide, sign = f"greatest({count}, lengthUTF8({{0}}))", braced(fill)
    if side in ("left", "right"):
        return _text(f"{side}PadUTF8({{0}}, {wide}, {sign})")
    if side != "both":
        raise InputError(field="side", value=shown(repr(side)), rule="it must be left, right or both", hint="")
    room = f"({wide} - lengthUTF8({{0}}))"
    before = f"(intDiv({room}, 2) + bitAnd(bitAnd({room}, {count}), 1))"
    return _text(f"rightPadUTF8(leftPadUTF8({{0}}, lengthUTF8({{0}}) + {before}, {sign}), {wide}, {sign})")


def _width(name: str, width: int) -> int:
    count: int = check_kind(name, width, int, "the width must be a whole number")
    if not 0 <= count <= 1_000_000:
        raise InputError(field=name, value=str(count), rule="a width must be from 0 to 1000000", hint="")
    return count


def zero_filled(width: int) -> Operation:
    """Pad the text with leading zeros to at least `width` characters, after a sign if there is one."""
    count = _width("zfill", width)
    rest = "substringUTF8({0}, 2)"
    signed = f"leftPadUTF8({rest}, greatest({max(count - 1, 0)}, lengthUTF8({rest})), '0')"
    plain = f"leftPadUTF8({{0}}, greatest({count}, lengthUTF8({{0}})), '0')"
    return _text(f"if(match({{0}}, '^[+-]'), concat(substringUTF8({{0}}, 1, 1), {signed}), {plain})")


def repeated(times: object) -> Applied:
    """Repeat the text; for fewer than one time, return an empty text."""
    words = "repeat({0}, {1})"
    return Applied(Operation(words, 2, 2, typed=known_or_null(words, TEXT)), (times,))


def split(separator: str | None = None, limit: int | None = None) -> Operation:
    """Split at the separator, or without one at white space; `limit` is the maximum number of cuts."""
    if separator is None:
        if limit is not None:
            raise InputError(field="limit", value=shown(repr(limit)), rule="it needs a separator", hint="")
        return listed(f"extractAll({{0}}, '[^{_BLANK}]+')")
    if not check_kind("split", separator, str, "a separator must be a text"):
        rule = "a separator must have at least one character"
        raise InputError(field="split", value=shown(repr(separator)), rule=rule, hint="")
    mark = braced(separator)
    parts = f"splitByString({mark}, {{0}})"
    if limit is None:
        return listed(parts)
    most = _width("limit", limit)
    rest = f"[arrayStringConcat(arraySlice(p, {most + 1}), {mark})]"
    some = f"if(length(p) > {most}, arrayConcat(arraySlice(p, 1, {most}), {rest}), p)"
    return listed(f"arrayMap(p -> {some}, [{parts}])[1]")


def contains_one(texts: object) -> Operation:
    """Return whether the text contains any of these texts."""
    known: list[Any] = list(texts) if isinstance(texts, list | tuple | set | frozenset) else [None]
    if not all(isinstance(each, str) for each in known) or len(known) > 255:
        rule = "it must be a list of up to 255 texts"
        raise InputError(field="contains_any", value=shown(repr(texts)), rule=rule, hint="")
    if not known or "" in known:
        return condition(f"if(isNull({{0}}), NULL, {'1' if known else '0'})")
    return condition(f"multiSearchAny({{0}}, [{', '.join(map(braced, known))}])")


def replaced(old: object, new: object = None) -> Applied:
    """Replace all occurrences of one text by another; `replace_values` replaces whole values."""
    hint = "replace_values({old: new}) replaces whole values."
    if isinstance(old, Mapping) or new is None:
        raise InputError(
            field="replace", value=shown(repr(old)), rule="it needs two texts, the old and the new one", hint=hint
        )

    def typing(kinds: Sequence[Kind]) -> Worded | None:
        if kinds[0] is not None and kinds[0].bare.name not in ("String", "FixedString"):
            raise InputError(field="replace", value=str(kinds[0]), rule="it only replaces parts of texts", hint=hint)
        return known_or_null(_REPLACE, TEXT)(kinds)

    return Applied(Operation(_REPLACE, 3, 3, typed=typing), (old, new))


_ENCODINGS = ("base64", "hex")


def encoded(encoding: str) -> Operation:
    """Return the text's UTF-8 bytes as `base64` or `hex`."""
    _check_encoding("encode", encoding)
    return _text("base64Encode({0})" if encoding == "base64" else "lower(hex({0}))")


def decoded(encoding: str) -> Operation:
    """Return the text that was encoded as `base64` or `hex`; raise an error if the value is malformed or not UTF-8."""
    _check_encoding("decode", encoding)
    fits = "match({0}, '^([0-9a-fA-F]{{2}})*$')"
    value, fits = ("tryBase64Decode({0})", "(base64Encode(d) = {0})") if encoding == "base64" else ("unhex({0})", fits)
    told = f"decode: a value is not a text in {encoding}"
    words = f"arrayMap(d -> if(throwIf(NOT ({fits} AND isValidUTF8(d)), '{told}') = 0, d, ''), [{value}])[1]"
    return Operation(words, typed=known_or_null(words, TEXT))


def _check_encoding(name: str, encoding: str) -> None:
    if encoding not in _ENCODINGS:
        raise InputError(
            field=name, value=shown(repr(encoding)), rule=f"it must be one of {', '.join(_ENCODINGS)}", hint=""
        )


def _like_sizes(words: str, kind: Type) -> Operation:
    return Operation(words, 2, 2, typed=known_or_null(words, kind))


def _of_few(operation: Operation) -> Operation:
    """Cast the number to a plain type where an argument is LowCardinality.

    ClickHouse would return a LowCardinality number, and these do not distinguish 0.0 and -0.0.
    """
    plain = operation.typed
    assert plain is not None

    def typing(kinds: Sequence[Kind]) -> Worded | None:
        answer = plain(kinds)
        is_few = any(kind is not None and kind.name == "LowCardinality" for kind in kinds)
        if answer is None or not is_few:
            return answer
        return Worded(f"CAST({answer.sql}, {quoting.text(str(answer.kind))})", answer.kind)

    return operation._replace(typed=typing, timed=operation.timed and typing)


TEXTS = {
    "upper": _text("upperUTF8({0})").telling("in capital letters", '["été", None]', "upper()", '["ÉTÉ", None]'),
    "lower": _text("lowerUTF8({0})").telling("in small letters", '["ÉTÉ"]', "lower()", '["été"]'),
    "title": Operation(_TITLE, typed=known_or_null(_TITLE, TEXT)).telling(
        "each word with a capital letter", '["it\'s ONE été"]', "title()", '["It\'S One Été"]'
    ),
    "capitalize": _text(_CAPITAL).telling(
        "the first letter in upper case, all others in lower case", '["été ROME"]', "capitalize()", '["Été rome"]'
    ),
    "strip": made(
        stripped("both", "strip"),
        "without white space, or these characters, at both ends",
        '[" a "]',
        "strip()",
        '["a"]',
    ),
    "lstrip": made(stripped("left", "lstrip"), "the same at the beginning", '["xya"]', 'lstrip("xy")', '["a"]'),
    "rstrip": made(stripped("right", "rstrip"), "the same at the end", '["a! "]', 'rstrip("! ")', '["a"]'),
    "remove_prefix": _like_sizes(_PREFIX, TEXT).telling(
        "without this prefix", '["a-b"]', 'remove_prefix("a-")', '["b"]'
    ),
    "remove_suffix": _like_sizes(_SUFFIX, TEXT).telling(
        "without this suffix", '["a.csv"]', 'remove_suffix(".csv")', '["a"]'
    ),
    "pad": made(
        padded,
        "padded to at least this width; `side` is `left`, `right` or `both`",
        '["7"]',
        'pad(3, fill="0")',
        '["007"]',
    ),
    "zfill": made(zero_filled, "padded with zeros in front, after a sign", '["7", "-7"]', "zfill(3)", '["007", "-07"]'),
    "repeat": made(repeated, "so many times", '["ab"]', "repeat(2)", '["abab"]'),
    "length": _of_few(gives("toInt64(lengthUTF8({0}))", LONG)).telling(
        "how many characters", '["été", ""]', "length()", "[3, 0]"
    ),
    "contains": condition("position({0}, {1}) > 0", 2).telling(
        "whether the text contains this", '["abc"]', 'contains("b")', "[True]"
    ),
    "contains_any": made(
        contains_one,
        "whether the text contains any of these",
        '["abc", "x"]',
        'contains_any(["b", "z"])',
        "[True, False]",
    ),
    "has_token": condition("hasToken({0}, {1})", 2).telling(
        "whether the text contains this word, between characters that are not letters or digits of ASCII",
        '["a bc", "abc"]',
        'has_token("bc")',
        "[True, False]",
    ),
    "startswith": condition("startsWith({0}, {1})", 2).telling(
        "whether the text begins with this", '["abc"]', 'startswith("ab")', "[True]"
    ),
    "endswith": condition("endsWith({0}, {1})", 2).telling(
        "whether the text ends with this", '["abc"]', 'endswith("ab")', "[False]"
    ),
    "find": _of_few(gives("(toInt64(positionUTF8({0}, {1})) - 1)", LONG, 2)).telling(
        "the place where this begins, or -1", '["été"]', 'find("t")', "[1]"
    ),
    "occurrences": _of_few(_like_sizes(_OCCURRENCES, LONG)).telling(
        "how often the text contains this, without overlaps", '["aaa"]', 'occurrences("aa")', "[1]"
    ),
    "replace": made(
        replaced, "replaces all occurrences of a text by another", '["a.b"]', 'replace(".", "-")', '["a-b"]'
    ),
    "split": made(
        split,
        "the parts of the text; without a separator, its words. An empty list for None",
        '["a,b,c"]',
        'split(",", 1)',
        '[["a", "b,c"]]',
    ),
    "join_with": Operation(
        "concat({0}{args})", 2, 100, apart=True, typed=lambda kinds: Worded("concat({0}{args})", like(TEXT, *kinds))
    ).telling("joined with other values into one text", '["a"]', 'join_with("-", 1)', '["a-1"]'),
    "encode": made(encoded, "its bytes as `base64` or `hex`", '["é"]', 'encode("base64")', '["w6k="]'),
    "decode": made(decoded, "the text of such bytes; others are refused", '["c3a9"]', 'decode("hex")', '["é"]'),
    "levenshtein": _like_sizes(_DISTANCE, LONG).telling(
        "the edit distance to another text, in characters", '["kitten"]', 'levenshtein("sitting")', "[3]"
    ),
    "jaro_winkler": _like_sizes("jaroWinklerSimilarity({0}, {1})", FLOAT).telling(
        "the Jaro-Winkler similarity of both texts' bytes, from 0 to 1",
        '["abc"]',
        'jaro_winkler("abc")',
        "[1.0]",
    ),
    "similarity": _like_sizes("toFloat64(1 - ngramDistanceUTF8({0}, {1}))", FLOAT).telling(
        "the share of common trigrams of both texts, from 0 to 1", '["abcd"]', 'similarity("abcd")', "[1.0]"
    ),
}
