"""Regular expressions, compared with Python's."""

from __future__ import annotations

import re
from typing import Any

import pytest

from aaiclick.data import Context, col
from aaiclick.errors import DataRefused, InputError

WORDS = ["", "a1b22", "été-7", "k=v;x=y", "x{2}", "line\nnext", "it's \\ 'quoted'"]
PATTERNS = ["[0-9]+", "([a-z])=([a-z])", "é.", "(\\d)(\\d)?", "x\\{2\\}", "^.+$", "(?i)ÉTÉ", "'.*'", "\\\\"]


@pytest.mark.parametrize("pattern", PATTERNS)
async def test_what_is_matched_is_what_python_matches(context: Context, pattern: str) -> None:
    made = await context.create_object_from_value([*WORDS, None])
    known = re.compile(pattern, re.DOTALL)
    found = [known.search(word) for word in WORDS]
    one = 1 if known.groups else 0
    assert await made.matches(pattern).data() == [*(each is not None for each in found), None]
    assert await made.full_match(pattern).data() == [*(known.fullmatch(word) is not None for word in WORDS), None]
    assert await made.extract(pattern).data() == [*(each and (each[one] or "") for each in found), None]
    assert await made.extract(pattern, 0).data() == [*(each and each[0] for each in found), None]
    whole = [[each[one] or "" for each in known.finditer(word)] for word in WORDS]
    assert await made.extract_all(pattern).data() == [*whole, []]
    assert await made.count_matches(pattern).data() == [*map(len, whole), None]
    assert await made.replace_regex(pattern, "<\\0>").data() == [
        *(known.sub("<\\\\g<0>>".replace("\\\\", "\\"), word) for word in WORDS),
        None,
    ]


async def test_groups_are_given_by_their_numbers(context: Context) -> None:
    made = await context.create_object_from_value(["2024-03", "none", None])
    assert await made.extract("(\\d+)-(\\d+)", 2).data() == ["03", None, None]
    assert await made.extract_groups("(\\d+)-(\\d+)").data() == [["2024", "03"], [], []]
    assert await made.replace_regex("(\\d+)-(\\d+)", "\\2/\\1").data() == ["03/2024", "none", None]
    with pytest.raises(DataRefused):
        await made.extract("(n)", 2).data()


async def test_what_is_no_pattern_is_refused(context: Context) -> None:
    made = await context.create_object_from_value(["a"])
    with pytest.raises(DataRefused):
        await made.extract("(").data()
    with pytest.raises(DataRefused, match="matches an empty text"):
        await made.count_matches("b*").data()
    column: Any = col("a")
    for wrong in (
        lambda: column.extract(5),
        lambda: column.extract("a", -1),
        lambda: column.replace_regex("a", 1),
    ):
        with pytest.raises(InputError):
            wrong()
