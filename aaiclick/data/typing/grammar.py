"""The parser of ClickHouse's types: checks a type's text and gives its canonical spelling.

Only what this parser has understood may become part of a statement.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, NoReturn
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from aaiclick.data.clocks import Clock, common_clock
from aaiclick.data.sql import quoting
from aaiclick.errors import InputError
from aaiclick.urls import did_you_mean, shown

TEXT_MAX = 1_000_000
DEPTH_MAX = 20
FIXED_MAX = 0xFF_FFFF
PRECISION_MAX = 76

INTEGERS = tuple(f"{sign}Int{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64, 128, 256))
PLAIN = ("Bool", *INTEGERS, "Float32", "Float64", "String", "Date", "Date32", "UUID", "IPv4", "IPv6")
NOT_NULLABLE = {"Array", "Map", "LowCardinality", "Nullable"}
FEW_VALUES = {*PLAIN, "FixedString", "DateTime"}
"""The types that LowCardinality may wrap; in new columns ClickHouse allows only texts and UUIDs unless a setting
permits more.
"""

_DECIMALS = {"Decimal32": 9, "Decimal64": 18, "Decimal128": 38, "Decimal256": 76}
_ENUM_BITS = {"Enum8": 8, "Enum16": 16}
_TOKEN = re.compile(
    r"""\s* (?: (?P<word> [A-Za-z_][A-Za-z0-9_]* )
              | (?P<number> -?[0-9]{1,20} )
              | ' (?P<text> (?: [^'\\] | \\. | '' )* ) '
              | ` (?P<quoted> (?: [^`\\] | \\. | `` )+ ) `
              | (?P<mark> [(),=] ) ) \s*""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_ESCAPE = re.compile(r"\\(.)|''|``", re.DOTALL)
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t", "0": "\0", "b": "\b", "f": "\f"}
_BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_QUOTED_ALWAYS = {"distinct", "all", "inf", "nan", "null", "table", "select", "from", "order", "true", "false"}


@dataclass(frozen=True)
class Type:
    """A parsed type; `str()` gives its canonical text."""

    name: str
    parts: tuple[Type, ...] = ()
    labels: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()
    zone: str = ""
    members: tuple[tuple[str, int], ...] = ()

    @property
    def is_nullable(self) -> bool:
        return self.name == "Nullable" or (self.name == "LowCardinality" and self.parts[0].is_nullable)

    @property
    def bare(self) -> Type:
        """The type without Nullable and LowCardinality around it."""
        return self.parts[0].bare if self.name in ("Nullable", "LowCardinality") else self

    @property
    def clock(self) -> Clock:
        """Whether times of this type, or inside of it, have a zone; without a zone in the type they have none."""
        if self.name in ("DateTime", "DateTime64"):
            return "aware" if self.zone else "naive"
        return common_clock(part.clock for part in self.parts)

    @property
    def bits(self) -> int:
        """The width of an integer, float or enum type."""
        return int(self.name.lstrip("UIntFloaEum"))

    def __str__(self) -> str:
        inside = [str(number) for number in self.numbers]
        inside += [quoting.text(self.zone)] if self.zone else []
        inside += [f"{quoting.text(label)} = {value}" for label, value in self.members]
        if self.labels:
            inside += [f"{_label(label)} {part}" for label, part in zip(self.labels, self.parts, strict=True)]
        else:
            inside += [str(part) for part in self.parts]
        return f"{self.name}({', '.join(inside)})" if inside else self.name


def _label(label: str) -> str:
    return label if _BARE.fullmatch(label) and label.lower() not in _QUOTED_ALWAYS else quoting.name(label)


def nullable(kind: Type) -> Type:
    """Return the Nullable type; LowCardinality stays outermost, as in LowCardinality(Nullable(String))."""
    if kind.is_nullable:
        return kind
    if kind.name == "LowCardinality":
        return Type("LowCardinality", (nullable(kind.parts[0]),))
    return Type("Nullable", (kind,))


class _Token(NamedTuple):
    sort: str
    text: str


@lru_cache(maxsize=2048)
def parse(text: str) -> Type:
    """Return the type that a text names; raise InputError if it names none."""
    reader = _Reader(text)
    kind = reader.type()
    if reader.sort:
        reader.refuse(f"there is something after the type: {shown(reader.peek.text)}")
    return kind


class _Reader:
    """A recursive descent parser of one type."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0
        self.tokens = self._tokens()

    def refuse(self, rule: str, hint: str = "") -> NoReturn:
        raise InputError(field="type", value=shown(self.text) or "''", rule=rule, hint=hint)

    def _tokens(self) -> list[_Token]:
        if len(self.text) > TEXT_MAX:
            self.refuse(f"it is longer than {TEXT_MAX} characters")
        tokens, at = [], 0
        while at < len(self.text):
            found = _TOKEN.match(self.text, at)
            if found is None:
                self.refuse(f"it cannot be read at {shown(self.text[at : at + 20])!r}")
            sort = str(found.lastgroup)
            tokens.append(_Token(sort, _unescaped(found[sort]) if sort in ("text", "quoted") else found[sort]))
            at = found.end()
        return tokens

    # ------------------------------------------------------------ tokens

    @property
    def peek(self) -> _Token:
        return self.tokens[self.at] if self.at < len(self.tokens) else _Token("", "")

    @property
    def sort(self) -> str:
        return self.peek.sort

    def take(self, sort: str, wanted: str) -> str:
        token = self.peek
        if token.sort != sort:
            self.refuse(f"{wanted} is missing" + (f" before {shown(token.text)!r}" if token.sort else " at its end"))
        self.at += 1
        return token.text

    def passed(self, mark: str) -> bool:
        """Step over the next token if it is `mark`, and return whether it was."""
        if self.peek != _Token("mark", mark):
            return False
        self.at += 1
        return True

    def expect(self, mark: str) -> None:
        if not self.passed(mark):
            self.refuse(f"«{mark}» is missing" + (f" before {shown(self.peek.text)!r}" if self.sort else " at its end"))

    def number(self, wanted: str, low: int, high: int) -> int:
        value = int(self.take("number", wanted))
        if not low <= value <= high:
            self.refuse(f"{wanted} is from {low} to {high}")
        return value

    # ------------------------------------------------------------ types

    def type(self) -> Type:
        word = self.take("word", "the name of a type")
        name = _NAMES.get(word.lower())
        if name is None:
            hint = did_you_mean(word.capitalize(), _NAMES.values()) or did_you_mean(word, _NAMES.values())
            self.refuse(f"there is no type {shown(word)}", hint or f"Use one of {', '.join(sorted(_READERS))}.")
        self.depth += 1
        if self.depth > DEPTH_MAX:
            self.refuse(f"it is nested deeper than {DEPTH_MAX}")
        kind = _READERS[name](self, name)
        self.depth -= 1
        return kind

    def fixed(self, name: str) -> Type:
        self.expect("(")
        length = self.number("the number of bytes", 1, FIXED_MAX)
        self.expect(")")
        return Type(name, numbers=(length,))

    def seconds(self, name: str) -> Type:
        if not self.passed("("):
            return Type(name)
        zone = self.zone()
        self.expect(")")
        return Type(name, zone=zone)

    def fractions(self, name: str) -> Type:
        if not self.passed("("):
            return Type(name, numbers=(3,))
        digits = self.number("the number of digits", 0, 9)
        zone = self.zone() if self.passed(",") else ""
        self.expect(")")
        return Type(name, numbers=(digits,), zone=zone)

    def zone(self) -> str:
        zone = self.take("text", "a time zone in quotes")
        if not is_zone(zone):
            self.refuse(f"there is no time zone {shown(zone)!r}", "Write it as in 'Europe/Berlin' or 'UTC'.")
        return zone

    def decimal(self, name: str) -> Type:
        self.expect("(")
        precision = _DECIMALS.get(name) or self.number("the number of digits", 1, PRECISION_MAX)
        scale = 0
        if name in _DECIMALS or self.passed(","):
            scale = self.number("the number of digits after the point", 0, precision)
        self.expect(")")
        return Type("Decimal", numbers=(precision, scale))

    def enum(self, name: str) -> Type:
        self.expect("(")
        members: dict[str, int] = {}
        while True:
            label = self.take("text", "a member in quotes")
            value = (members[list(members)[-1]] + 1) if members else 1
            if self.passed("="):
                value = int(self.take("number", "the number of a member"))
            if label in members or value in members.values():
                self.refuse(f"{shown(label)!r} = {value} occurs twice")
            members[label] = value
            if not self.passed(","):
                break
        self.expect(")")
        ordered = tuple(sorted(members.items(), key=lambda member: member[1]))
        return Type(self._enum_name(name, ordered[0][1], ordered[-1][1]), members=ordered)

    def _enum_name(self, name: str, low: int, high: int) -> str:
        for fitting, bits in _ENUM_BITS.items():
            if name in ("Enum", fitting) and -(2 ** (bits - 1)) <= low and high < 2 ** (bits - 1):
                return fitting
        self.refuse(f"its numbers do not fit into {name}")

    def wrapper(self, name: str) -> Type:
        self.expect("(")
        part = self.type()
        self.expect(")")
        if name == "Nullable" and part.name in NOT_NULLABLE:
            hint = "Write LowCardinality(Nullable(…))." if part.name == "LowCardinality" else ""
            self.refuse(f"{part.name} cannot be Nullable", hint)
        if name == "LowCardinality" and not _holds_few(part):
            self.refuse(f"{part.name} cannot be LowCardinality")
        return Type(name, (part,))

    def map(self, name: str) -> Type:
        self.expect("(")
        key = self.type()
        self.expect(",")
        value = self.type()
        self.expect(")")
        if key.is_nullable:
            self.refuse("the key of a Map cannot be Nullable")
        return Type(name, (key, value))

    def tuple(self, name: str) -> Type:
        self.expect("(")
        labels, parts = [], []
        while True:
            following = self.tokens[self.at + 1] if self.at + 1 < len(self.tokens) else _Token("", "")
            if self.sort == "quoted" or (self.sort == "word" and following.sort == "word"):
                labels.append(quoting.check_column(self.take(self.sort, "a name")))
            parts.append(self.type())
            if not self.passed(","):
                break
        self.expect(")")
        if labels and (len(labels) != len(parts) or len(set(labels)) != len(labels)):
            self.refuse("either all parts of a Tuple have names, all different, or none has")
        if "null" in labels:
            self.refuse("«null» is not allowed as the name of a part")
        return Type(name, tuple(parts), tuple(labels))


def _holds_few(part: Type) -> bool:
    inner = part.parts[0] if part.name == "Nullable" else part
    return inner.name in FEW_VALUES


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda found: _ESCAPED.get(found[1], found[1]) if found[1] else found[0][0], text)


@lru_cache(maxsize=1024)
def is_zone(key: str) -> bool:
    """Return whether a time zone of this name is known to this system."""
    try:
        return re.fullmatch(r"[A-Za-z0-9_+\-/]{1,64}", key) is not None and ZoneInfo(key).key == key
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False


_READERS: dict[str, Callable[[_Reader, str], Type]] = {
    **dict.fromkeys(PLAIN, lambda _, name: Type(name)),
    "FixedString": _Reader.fixed,
    "DateTime": _Reader.seconds,
    "DateTime64": _Reader.fractions,
    "Decimal": _Reader.decimal,
    **dict.fromkeys(_DECIMALS, _Reader.decimal),
    **dict.fromkeys(("Enum", *_ENUM_BITS), _Reader.enum),
    **dict.fromkeys(("Nullable", "LowCardinality", "Array"), _Reader.wrapper),
    "Map": _Reader.map,
    "Tuple": _Reader.tuple,
}
_NAMES = {name.lower(): name for name in _READERS}
