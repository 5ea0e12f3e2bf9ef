"""`strptime`: texts as times, by the format codes of Python."""

from __future__ import annotations

import re
from collections.abc import Sequence

from aaiclick.data.operations.operation import Operation
from aaiclick.data.sql import quoting
from aaiclick.data.sql.zones import named
from aaiclick.data.typing.expression_types import Kind, Worded, like, maybe
from aaiclick.data.typing.grammar import Type
from aaiclick.data.typing.integer_types import null_or
from aaiclick.errors import InputError
from aaiclick.urls import shown

_MONTHS = ["january", "february", "march", "april", "may", "june"]
_MONTHS += ["july", "august", "september", "october", "november", "december"]
_WEEKDAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]


def _words(names: Sequence[str], letters: int | None = None) -> str:
    return f"({'|'.join(name[:letters] for name in names)})"


_PARTS = {
    "Y": "([0-9]{4})",
    "y": "([0-9]{2})",
    "m": "(1[0-2]|0[1-9]|[1-9])",
    "d": "(3[01]|[12][0-9]|0[1-9]|[1-9]| [1-9])",
    "H": "(2[0-3]|[01][0-9]|[0-9])",
    "I": "(1[0-2]|0[1-9]|[1-9]| [1-9])",
    "M": "([0-5][0-9]|[0-9])",
    "S": "([0-5][0-9]|[0-9])",
    "f": "([0-9]{1,6})",
    "j": "(36[0-6]|3[0-5][0-9]|[12][0-9][0-9]|0[1-9][0-9]|00[1-9]|[1-9][0-9]|0[1-9]|[1-9])",
    "p": "(am|pm)",
    "b": _words(_MONTHS, 3),
    "B": _words(_MONTHS),
    "a": _words(_WEEKDAYS, 3),
    "A": _words(_WEEKDAYS),
    "z": "([+-][0-9]{2}:?[0-9]{2}(?::?[0-5][0-9])?|z)",
}
_SHORT = {"T": "%H:%M:%S", "F": "%Y-%m-%d", "D": "%m/%d/%y", "R": "%H:%M"}
_CODE = re.compile("%(.)", re.DOTALL)

TOLD = "strptime: a value is not a time of the form {}"


def read(form: str, strict: bool = True) -> Operation:
    """Parse texts as times by Python's format codes: in UTC if there is %z, otherwise without a zone.

    A text that does not match the format, or is not a valid time, raises an error; if not strict, it gives None.
    """
    pattern, codes = _understood(form)
    group = {code: f"g[{place}]" for place, code in enumerate(codes, 1)}
    fits, ticks = _ticks(group)
    answer = Type("DateTime64", numbers=(6,), zone="UTC" if "z" in codes else "")
    zone = ", 'UTC'" if "z" in codes else ""
    refused = _escaped(quoting.text(TOLD.format(shown(repr(form)))))
    made = f"fromUnixTimestamp64Micro({ticks}{zone})"
    value = f"if(throwIf(NOT {fits}, {refused}) = 0, {made}, {made})" if strict else f"if({fits}, {made}, NULL)"
    words = named(value, g=f"extractGroups(lowerUTF8({{0}}), {_escaped(quoting.text(pattern))})")

    def typing(kinds: Sequence[Kind]) -> Worded:
        return Worded(null_or(words, kinds), like(answer, *kinds) if strict else maybe(answer))

    return Operation(words, typed=typing, makes="aware" if "z" in codes else "naive")


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _understood(form: object) -> tuple[str, list[str]]:
    """Return the regular expression for a format, and its codes in order."""
    if not isinstance(form, str):
        raise _refused(form, "it must be a text such as '%Y-%m-%d'")
    for code, meaning in _SHORT.items():
        form = form.replace(f"%{code}", meaning)
    codes = [code for code in _CODE.findall(form) if code != "%"]
    unknown = [code for code in codes if code not in _PARTS]
    if unknown or form.replace("%%", "").endswith("%"):
        known = " ".join(f"%{code}" for code in (*_PARTS, *_SHORT, "%"))
        raise _refused(f"%{unknown[0]}" if unknown else form, f"one of {known}")
    if len(set(codes)) < len(codes) or sum(code in codes for code in "mbB") > 1:
        raise _refused(form, "one part of a time occurs twice")
    if ("j" in codes and set(codes) & set("mbBd")) or {"H", "I"} <= set(codes) or {"Y", "y"} <= set(codes):
        raise _refused(form, "two codes tell the same part of a time")
    if not codes:
        raise _refused(form, "it has no code, such as %Y")
    pieces = re.split("(%.|[ \t\n]+)", form, flags=re.DOTALL)
    return f"^{''.join(map(_piece, pieces))}$", codes


def _piece(piece: str) -> str:
    if piece.startswith("%") and len(piece) == 2:
        return "%" if piece[1] == "%" else _PARTS[piece[1]]
    if piece and not piece.strip():
        return "\\s+"
    return "".join(sign if sign.isalnum() else f"\\x{{{ord(sign):x}}}" for sign in piece.lower())


def _refused(form: object, rule: str) -> InputError:
    return InputError(field="strptime", value=shown(repr(form)), rule=rule, hint="")


def _number(text: str) -> str:
    return f"toInt64OrZero(trimLeft({text}))"


def _place(names: Sequence[str], text: str) -> str:
    listed = ", ".join(f"'{name[:3]}'" for name in names)
    return f"toInt64(indexOf([{listed}], substring({text}, 1, 3)))"


def _ticks(group: dict[str, str]) -> tuple[str, str]:
    """Return SQL for whether the parts make a valid time, and for its microseconds since 1970."""
    year, month, day = _year(group), _month(group), _number(group["d"]) if "d" in group else "1"
    start = f"makeDate32({year}, {month}, {day})"
    checks = ["notEmpty(g)", f"{year} BETWEEN 1900 AND 2299", f"toDayOfMonth({start}) = {day}"]
    if "j" in group:
        start = f"addDays(makeDate32({year}, 1, 1), {_number(group['j'])} - 1)"
        checks = [*checks[:2], f"toYear({start}) = {year}"]
    seconds = f"toInt64(toInt32({start})) * 86400 + {_hour(group)} * 3600"
    seconds += "".join(f" + {_number(group[code])} * {unit}" for code, unit in (("M", 60), ("S", 1)) if code in group)
    if "z" in group:
        seconds += f" - {_offset(group['z'])}"
        checks.append(f"{seconds} BETWEEN {-25_567 * 86_400} AND {120_530 * 86_400 - 1}")
    fraction = f" + {_number(_six(group['f']))}" if "f" in group else ""
    return f"({' AND '.join(checks)})", f"(({seconds}) * 1000000{fraction})"


def _year(group: dict[str, str]) -> str:
    if "y" in group:
        short = _number(group["y"])
        return f"({short} + if({short} < 69, 2000, 1900))"
    return _number(group["Y"]) if "Y" in group else "1900"


def _month(group: dict[str, str]) -> str:
    if "m" in group:
        return _number(group["m"])
    named_by = group.get("b") or group.get("B")
    return _place(_MONTHS, named_by) if named_by else "1"


def _hour(group: dict[str, str]) -> str:
    if "H" in group:
        return _number(group["H"])
    if "I" not in group:
        return "0"
    half = f" + if({group['p']} = 'pm', 12, 0)" if "p" in group else ""
    return f"(modulo({_number(group['I'])}, 12){half})"


def _six(text: str) -> str:
    return f"rightPad({text}, 6, '0')"


def _offset(text: str) -> str:
    """Return SQL for the offset from UTC in seconds, positive to the east; Z is 0."""
    bare = f"replaceAll({text}, ':', '')"
    parts = " + ".join(
        f"{_number(f'substring({bare}, {at}, 2)')} * {unit}" for at, unit in ((2, 3600), (4, 60), (6, 1))
    )
    return f"(if(startsWith({text}, '-'), -1, 1) * ({parts}))"
