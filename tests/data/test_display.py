"""Rows on a screen: aligned, shortened, and harmless."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aaiclick.data.display import CELL_MAX, glimpse, html, markdown, text


def test_text_is_aligned_and_numbers_stand_to_the_right() -> None:
    shown = text(["n", "name"], [[1, 20, None], ["a", "bcd", None]], "2 more rows")
    assert shown.splitlines() == ["   n  name", "   1  a", "  20  bcd", "NULL  NULL", "2 more rows"]


def test_wide_signs_take_two_places() -> None:
    assert text(["a", "b"], [["日本", "x"], ["1", "2"]]).splitlines()[1:] == ["日本  1", "x     2"]


def test_markdown_is_a_github_table() -> None:
    shown = markdown(["n", "a|b"], [[1.5, Decimal("2")], ["x|y\n*z*", "<b>"]], "and more")
    assert shown.splitlines() == [
        "| n | a\\|b |",
        "| ---: | --- |",
        "| 1.5 | x\\|y\\\\n\\*z\\* |",
        "| 2 | &lt;b&gt; |",
        "",
        "and more",
    ]


def test_html_is_escaped() -> None:
    shown = html(["<i>"], [["<script>alert('x')</script>"]], "a & b")
    assert "<script" not in shown
    assert "<i>" not in shown
    assert "&lt;script&gt;" in shown
    assert "a &amp; b" in shown


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "NULL"),
        (True, "true"),
        (b"\xff", "b'\\xff'"),
        (date(2024, 1, 2), "2024-01-02"),
        (datetime(2024, 1, 2, 3, tzinfo=UTC), "2024-01-02 03:00:00+00:00"),
        ([1, None, "x"], "[1, NULL, x]"),
        ({"a": [1]}, "{a: [1]}"),
        ("\x1b[31mred\0", "\\x1b[31mred\\0"),
        ("\u202eevil", "\\u202eevil"),
        ("x" * 1000, "x" * (CELL_MAX - 1) + "…"),
        (list(range(10**6)), None),
        ("\ud800", "\\ud800"),
    ],
    ids=lambda value: ascii(value)[:20],
)
def test_a_cell_is_short_and_plain(value: object, expected: str | None) -> None:
    shown = text(["c"], [[value]]).splitlines()[1].strip()
    assert len(shown) <= CELL_MAX
    assert expected is None or shown == expected


def test_no_rows_show_the_names() -> None:
    assert text(["a"], [[]]) == "a"
    assert markdown(["a"], [[]]) == "| a |\n| --- |"
    assert "<th>a</th>" in html(["a"], [[]])


@given(st.lists(st.text(), min_size=1, max_size=5))
def test_every_row_stays_on_its_line(values: list[str]) -> None:
    assert len(markdown(["a"], [values]).splitlines()) == 2 + len(values)
    assert len(text(["a"], [values]).split("\n")) == 1 + len(values)
    cells = [
        line
        for line in markdown(["a"], [values]).splitlines()[2:]
        if line.replace("\\\\", "").replace("\\|", "").count("|") != 2
    ]
    assert not cells


class Rude:
    def __repr__(self) -> str:
        raise RuntimeError


STRANGE = [10**5000, [10**5000], Rude(), "x" * 10**6, list(range(10**6)), "\ud800"]


@pytest.mark.parametrize("value", STRANGE, ids=lambda value: type(value).__name__)
def test_a_glimpse_is_short_whatever_the_value(value: object) -> None:
    assert len(glimpse(value)) < 200
    glimpse(value).encode()
