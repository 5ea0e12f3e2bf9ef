"""Regular expressions in RE2 syntax: `.` matches a line end too, and there are no lookaheads or lookbehinds."""

from __future__ import annotations

from aaiclick.data.operations.operation import Operation, check_kind, condition, gives, made
from aaiclick.data.operations.row_functions.texts import LONG, braced, known_or_null, listed
from aaiclick.data.typing.expression_types import TEXT, Typing, Worded, maybe
from aaiclick.errors import InputError
from aaiclick.urls import shown


def _pattern(name: str, pattern: str) -> str:
    return braced(check_kind(name, pattern, str, "a pattern must be a text"))


def _maybe_text(words: str) -> Typing:
    return lambda _: Worded(words, maybe(TEXT))


def extract(pattern: str, group: int | None = None) -> Operation:
    """Return the first match, or a group of it; None if there is no match.

    Without a number it is the first group, or the whole match if the pattern has no group.
    """
    mark = _pattern("extract", pattern)
    found = f"extract({{0}}, {mark})"
    if group is not None:
        if check_kind("group", group, int, "it must be a whole number") < 0:
            raise InputError(
                field="group",
                value=shown(repr(group)),
                rule="it must be 0 for the whole match, 1 for the first group, and so on",
                hint="",
            )
        found = f"regexpExtract({{0}}, {mark}, {group})"
    words = f"if(match({{0}}, {mark}), {found}, NULL)"
    return Operation(words, typed=_maybe_text(words))


def extract_all(pattern: str) -> Operation:
    """Return all matches as a list: their first groups, or the whole matches if the pattern has no group."""
    return listed(f"extractAll({{0}}, {_pattern('extract_all', pattern)})")


def extract_groups(pattern: str) -> Operation:
    """Return the groups of the first match; an empty list if there is none."""
    return listed(f"extractGroups({{0}}, {_pattern('extract_groups', pattern)})")


def replace_regex(pattern: str, by: str) -> Operation:
    r"""Replace all matches; `\0` in the replacement is the match, `\1` its first group."""
    mark = _pattern("replace_regex", pattern)
    other = braced(check_kind("replace_regex", by, str, "the replacement must be a text"))
    return gives(f"replaceRegexpAll({{0}}, {mark}, {other})", TEXT)


def count_matches(pattern: str) -> Operation:
    """Count the matches that do not overlap; a pattern that matches the empty text raises an error."""
    mark = _pattern("count_matches", pattern)
    told = "count_matches: the pattern matches an empty text"
    words = f"toInt64(if(throwIf(match('', {mark}), '{told}') = 0, countMatches({{0}}, {mark}), 0))"
    return Operation(words, typed=known_or_null(words, LONG))


def full_match(pattern: str) -> Operation:
    check_kind("full_match", pattern, str, "a pattern must be a text")
    whole = braced(f"^(?:{pattern})\\z")
    return condition(f"match({{0}}, {whole})")


PATTERNS = {
    "like": condition("like({0}, {1})", 2).telling(
        "SQL's LIKE: `%` matches any text, `_` one character", '["été"]', 'like("%t_")', "[True]"
    ),
    "ilike": condition("ilike({0}, {1})", 2).telling("the same, ignoring case", '["ABC"]', 'ilike("a%")', "[True]"),
    "matches": condition("match({0}, {1})", 2).telling(
        "whether a pattern matches somewhere", '["a1", "b"]', 'matches("[0-9]")', "[True, False]"
    ),
    "full_match": made(
        full_match, "whether a pattern matches the whole text", '["12", "1a"]', 'full_match("[0-9]+")', "[True, False]"
    ),
    "extract": made(
        extract,
        "the first match of a pattern, or a group of it; None if there is none",
        '["a-12", "b"]',
        r'extract("([a-z])-(\\d+)", 2)',
        '["12", None]',
    ),
    "extract_all": made(
        extract_all, "all matches of a pattern", '["a1b22", None]', 'extract_all("[0-9]+")', '[["1", "22"], []]'
    ),
    "extract_groups": made(
        extract_groups, "the groups of the first match", '["k=v"]', 'extract_groups("(.)=(.)")', '[["k", "v"]]'
    ),
    "count_matches": made(count_matches, "how often a pattern matches", '["a1b22"]', 'count_matches("[0-9]+")', "[2]"),
    "replace_regex": made(
        replace_regex,
        "replaces all matches of a pattern by a text",
        '["ab"]',
        r'replace_regex("(a)(b)", r"\2\1")',
        '["ba"]',
    ),
}
