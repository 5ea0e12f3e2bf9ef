"""The options of text files (delimiter, header, encoding …): their checks, and the ClickHouse settings they become."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from aaiclick.errors import InputError
from aaiclick.urls import did_you_mean, shown

ENCODINGS = {"utf-8": "", "latin-1": "ISO-8859-1", "iso-8859-15": "ISO-8859-15", "cp1252": "windows-1252"}
"""ClickHouse's names of the encodings; UTF-8 needs no conversion."""

COMPRESSIONS = ("auto", "none", "gz", "zst", "lz4", "xz", "bz2")
NO_TEXT = "\x01no text is this\x02"
"""Passed to ClickHouse as the text of NULL, so that a missing cell (NULL) differs from an empty one."""


@dataclass(frozen=True)
class Options:
    """The options of one text file, checked."""

    delimiter: str = ","
    header: bool | None = None
    null: str = "\\N"
    encoding: str = "utf-8"
    decimal: str = "."
    date_format: str = ""
    compression: str = "auto"
    skip_rows: int = 0

    def has_header(self, file_format: str) -> bool:
        """Return whether the first row holds the column names: by the option, else by the format's name."""
        return file_format.endswith("WithNames") if self.header is None else self.header


def _is_text(value: object) -> bool:
    return isinstance(value, str) and "\0" not in value and len(value) <= 100


def _is_date_format(value: object) -> bool:
    return _is_text(value) and all(sign in "Ymdjbeay%" for sign in _codes(str(value)))


def _codes(text: str) -> str:
    """Return the letters after the percent signs; `?` where a percent sign is the last character."""
    return "".join(part[:1] or "?" for part in text.replace("%%", "").split("%")[1:])


_CHECKS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "delimiter": (lambda value: _is_text(value) and len(value) == 1 and value not in '"\n\r\\', "one character"),
    "header": (lambda value: isinstance(value, bool), "True or False"),
    "null": (_is_text, "a text"),
    "encoding": (lambda value: value in ENCODINGS, f"it must be one of {', '.join(ENCODINGS)}"),
    "decimal": (lambda value: value in (".", ","), "it must be a point or a comma"),
    "date_format": (_is_date_format, "it must be a form such as %d.%m.%Y, of %Y %m %d %y %b %j %e"),
    "compression": (lambda value: value in COMPRESSIONS, f"it must be one of {', '.join(COMPRESSIONS)}"),
    "skip_rows": (
        lambda value: type(value) is int and 0 <= value <= 1_000_000,
        "it must be a number of lines from 0 to 1000000",
    ),
}


def read_options(given: Mapping[str, Any] | None) -> Options:
    """Return the checked options; raise InputError for an unknown name or a bad value."""
    for name, value in (given or {}).items():
        if name not in _CHECKS:
            hint = did_you_mean(str(name), _CHECKS) or f"The options are {', '.join(_CHECKS)}."
            raise InputError(field="options", value=shown(repr(name)), rule="there is no such option", hint=hint)
        check, rule = _CHECKS[name]
        try:
            is_right = check(value)
        except TypeError:  # an unhashable value
            is_right = False
        if not is_right:
            raise InputError(field=f"options[{name!r}]", value=shown(repr(value)), rule=rule, hint="")
    return Options(**(given or {}))


def cell_settings(options: Options) -> dict[str, Any]:
    """Return ClickHouse settings that read the cells of CSV and TSV verbatim."""
    return {
        "format_csv_delimiter": options.delimiter,
        "format_csv_null_representation": NO_TEXT,
        "format_tsv_null_representation": NO_TEXT,
        "input_format_csv_empty_as_default": 0,
        "input_format_tsv_empty_as_default": 0,
        "input_format_csv_allow_variable_number_of_columns": 1,
        "input_format_tsv_allow_variable_number_of_columns": 1,
        "input_format_csv_detect_header": 0,
        "input_format_tsv_detect_header": 0,
        "input_format_csv_trim_whitespaces": 0,
        "input_format_csv_skip_trailing_empty_lines": 1,
        "input_format_tsv_skip_trailing_empty_lines": 1,
        "input_format_tsv_crlf_end_of_line": 1,
        "input_format_csv_skip_first_lines": options.skip_rows,
        "input_format_tsv_skip_first_lines": options.skip_rows,
        "precise_float_parsing": 1,
    }
