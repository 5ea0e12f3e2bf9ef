"""Which columns a piece of SQL names."""

from __future__ import annotations

import pytest

from aaiclick.data.sql.raw_sql_columns import named_columns


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("a > 1", {"a"}),
        ("a > 1 AND not (`b c` LIKE '%a%b' OR a IS NULL)", {"a", "b c"}),
        ('abs(a) * 2 + "b c" % 1.5e3', {"a", "b c"}),
        ("a in (1, 2) and a NOT IN [3]", {"a"}),
        ("b between 'it''s \\' a' and 'x'", {"b"}),
        ("CASE WHEN a > 0 THEN b ELSE 1 END", {"a", "b"}),
        ("a + interval 1 day", {"a"}),
        ("arrayMap(a -> a + 1, b)", {"a", "b"}),
        ("count()", set()),
        ("1", set()),
    ],
)
def test_names_are_those_of_columns(sql: str, names: set[str]) -> None:
    assert named_columns(sql, ["a", "b", "b c"]) == names


@pytest.mark.parametrize(
    "sql",
    [
        "a IN (SELECT x FROM t)",
        "a IN b",
        "count(*)",
        "a AND *",
        "COLUMNS('a')",
        "a AS c",
        "c > 1",
        "t.a = 1",
        "arrayMap(x -> x + 1, a)",
        "a::Int8",
        "a /* b */",
        "`c`",
        "ä > 1",
        "sum(a) OVER (PARTITION BY b)",
        "exists(select 1)",
    ],
)
def test_what_may_mean_anything_is_not_guessed(sql: str) -> None:
    assert named_columns(sql, ["a", "b"]) is None
