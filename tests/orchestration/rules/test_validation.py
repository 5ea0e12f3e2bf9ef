"""The one validator of what comes from outside."""

from __future__ import annotations

import math
import sqlite3
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aaiclick.errors import InputError
from aaiclick.orchestration.rules.states import JobStatus, TaskStatus
from aaiclick.orchestration.rules.validation import (
    ID_MAX,
    LIMIT_MAX,
    NAME_LENGTH_MAX,
    check_id,
    check_key,
    check_name,
    check_paging,
    check_seconds,
    check_status,
    escape_for_terminal,
    is_storable,
    like_pattern,
    mask_secrets,
    shorten,
    shown,
)


def refusal(call: Any, *args: Any) -> str:
    with pytest.raises(InputError) as caught:
        call(*args)
    return str(caught.value)


# ---------------------------------------------------------------- names

GOOD_NAMES = [
    "etl",
    "a",
    "Straße 7",
    "👩‍👩‍👧 flow",
    "نص",
    "<script>alert(1)</script>",
    "'; DROP TABLE jobs; --",
    "%_\\",
    "x" * NAME_LENGTH_MAX,
    "🎉" * NAME_LENGTH_MAX,
]
BAD_NAMES: list[Any] = [
    "",
    " ",
    "\u3000",
    "\u200d",
    "a ",
    " a",
    "a\u00a0",
    "a\0b",
    "a\nb",
    "a\tb",
    "a\rb",
    "a\x7fb",
    "a\x85b",
    "\x1b[31mred",
    "a\ud800b",
    "a\u202eb",
    "a\u2066b",
    "a\u200fb",
    "a\u200bb",
    "a\u2028b",
    "\ufeffa",
    "x" * (NAME_LENGTH_MAX + 1),
    "x" * 10_000,
    None,
    5,
    b"name",
    ["name"],
]


@pytest.mark.parametrize("name", GOOD_NAMES)
def test_a_good_name_is_kept_as_it_is(name: str) -> None:
    assert check_name(name) == name
    assert check_key(name) == name


@pytest.mark.parametrize("name", BAD_NAMES, ids=ascii)
def test_a_bad_name_is_refused_in_one_short_line(name: Any) -> None:
    message = refusal(check_name, name, "job name")
    assert message.startswith("job name: ")
    assert len(message) < 300
    assert message.isprintable()
    assert refusal(check_key, name).startswith("key: ")


def test_a_str_of_another_type_is_refused() -> None:
    assert "must be a str" in refusal(check_name, type("Text", (str,), {})("x"))


def test_names_that_differ_in_case_or_accent_are_different() -> None:
    assert len({check_name(name) for name in ("etl", "ETL", "étl", "e\u0301tl")}) == 4


@given(st.text())
def test_every_accepted_name_can_be_stored_and_shown(name: str) -> None:
    try:
        check_name(name)
    except InputError as error:
        assert str(error).encode()  # noqa: PT017 either way is right
    else:
        assert is_storable(name)
        assert escape_for_terminal(name) == name


# ---------------------------------------------------------------- numbers


@pytest.mark.parametrize("seconds", [0, -1, 0.0, 10**12, 1e308, 10**400, math.nan, math.inf, "5", True, None])
def test_seconds_beyond_their_range_are_refused_with_it(seconds: Any) -> None:
    with pytest.raises(InputError, match="above 0, at most 315360000"):
        check_seconds(seconds, "timeout_s")


@pytest.mark.parametrize("seconds", [1, 0.001, 315_360_000, 315_360_000.0])
def test_seconds_within_their_range(seconds: float) -> None:
    assert check_seconds(seconds, "timeout_s") == seconds


def test_paging_has_defaults_and_limits() -> None:
    assert check_paging() == (100, 0)
    assert check_paging(LIMIT_MAX, 40) == (LIMIT_MAX, 40)
    assert check_paging(1, 0) == (1, 0)


@pytest.mark.parametrize("limit", [-1, 0, 10**9, LIMIT_MAX + 1, "10", 1.0, True, [1]])
def test_a_bad_limit_is_refused(limit: Any) -> None:
    assert refusal(check_paging, limit).startswith("limit: ")


def test_the_cap_is_named() -> None:
    assert "allowed are 1 to 1000" in refusal(check_paging, 10**9)


@pytest.mark.parametrize("offset", [-5, 2**63, "x", 0.5, False])
def test_a_bad_offset_is_refused(offset: Any) -> None:
    assert refusal(check_paging, 10, offset).startswith("offset: ")


def test_ids_are_positive_63_bit_numbers() -> None:
    assert check_id(1) == 1
    assert check_id(ID_MAX) == ID_MAX


@pytest.mark.parametrize("value", [0, -1, 2**63, "1e3", "0x10", "5", 1.0, True, None, 10**5000], ids=range(10))
def test_a_bad_id_is_refused(value: Any) -> None:
    assert refusal(check_id, value, "task id").startswith("task id: ")


# ---------------------------------------------------------------- choices


@pytest.mark.parametrize("value", ["RUNNING", "running", "Running", TaskStatus.RUNNING])
def test_a_status_is_accepted_in_either_case(value: str) -> None:
    assert check_status(value, TaskStatus) is TaskStatus.RUNNING


def test_an_unknown_status_gets_the_list_and_a_guess() -> None:
    message = refusal(check_status, "RUNNIG", JobStatus)
    assert "Did you mean running?" in message
    assert "pending, running, completed, failed, cancelled" in message


@pytest.mark.parametrize("value", ["", "\0", "x" * 10_000, 5, None, ["running"]])
def test_nonsense_as_a_status_is_refused(value: Any) -> None:
    assert "pending" in refusal(check_status, value, JobStatus)


def test_another_enums_member_counts_as_its_text() -> None:
    assert check_status(JobStatus.RUNNING, TaskStatus) is TaskStatus.RUNNING
    assert "Valid are" in refusal(check_status, TaskStatus.CLAIMED, JobStatus)


# ---------------------------------------------------------------- search

NAMES = ["etl", "my_etl", "myXetl", "50%", "50x", "a\\b", "a\\%b", "it's", "wow!", "w!w", "%'; DROP TABLE jobs", "é"]


def search(pattern: str) -> list[str]:
    """What a database finds with the pattern."""
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE jobs (name TEXT)")
    connection.executemany("INSERT INTO jobs VALUES (?)", [(name,) for name in NAMES])
    found = connection.execute("SELECT name FROM jobs WHERE name LIKE ? ESCAPE ?", like_pattern(pattern)).fetchall()
    assert connection.execute("SELECT count(*) FROM jobs").fetchone() == (len(NAMES),)
    connection.close()
    return [name for (name,) in found]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("%etl%", ["etl", "my_etl", "myXetl"]),
        ("my_etl", ["my_etl", "myXetl"]),
        ("a\\b", ["a\\b"]),
        ("a\\%", ["a\\b", "a\\%b"]),
        ("it's", ["it's"]),
        ("wow!", ["wow!"]),
        ("w!%", ["w!w"]),
        ("%'; DROP TABLE%", ["%'; DROP TABLE jobs"]),
        ("%", NAMES),
        ("nothing", []),
    ],
)
def test_a_pattern_means_what_it_says(pattern: str, found: list[str]) -> None:
    assert search(pattern) == found


@pytest.mark.parametrize("pattern", ["", "a\0", "a\ud800", "a\nb", "x" * 201, 5, None])
def test_a_bad_pattern_is_refused(pattern: Any) -> None:
    assert refusal(like_pattern, pattern).startswith("name_like: ")


# ---------------------------------------------------------------- showing


def test_escape_shows_what_a_terminal_would_obey() -> None:
    assert escape_for_terminal("\x1b[31mred\x07\n\u202e\ud800\U000e0041") == (
        "\\x1b[31mred\\x07\\x0a\\u202e\\ud800\\U000e0041"
    )
    assert escape_for_terminal("grüße 🎉 <b>") == "grüße 🎉 <b>"


class Rude:
    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def __repr__(self) -> str:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    "value",
    [
        "x" * 10**6,
        b"x" * 10**6,
        list(range(10**5)),
        dict.fromkeys(range(1000), "y" * 100),
        10**5000,
        [10**5000],
        Rude(ValueError("no")),
        Rude(RecursionError()),
        Rude(5),
        Rude("\x1b[2J\n" * 100),
        [Rude(ValueError("no"))],
        "\ud800",
    ],
    ids=range(12),
)
def test_any_value_is_shown_in_one_short_line(value: Any) -> None:
    for limit in (20, 80):
        text = shorten(value, limit)
        assert 0 < len(text) <= limit
        assert text.isprintable()


def test_a_very_deep_value_is_shown() -> None:
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    assert shorten(value).startswith("[[")


def test_short_values_are_shown_whole() -> None:
    assert [shorten(value) for value in (1, "a", None, [1, "b"])] == ["1", "'a'", "None", "[1, 'b']"]


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://me:hunter2@host/db",
        "mysql://:hunter2@host",
        "{'password': 'hunter2'}",
        "PASSWORD=hunter2 host=x",
        'api_key: "hunter2"',
        "[('auth_token', 'hunter2')]",
        "aai_380467616543174656_hunter2-hunter2_hunter2",
    ],
)
def test_secrets_are_masked(text: str) -> None:
    assert "hunter2" not in mask_secrets(text)
    assert "hunter2" not in shorten(text)


def test_a_field_called_a_secret_hides_its_value() -> None:
    assert shown("hunter2", "kwargs.db_password") == "***"
    assert shown("hunter2", "kwargs.user") == "'hunter2'"
    assert [shown(5, field) for field in ("token", "token id", "Token name", "token id x")] == ["***", "5", "5", "***"]


def test_urls_without_a_password_are_shown() -> None:
    assert mask_secrets("http://host:8080/a@b") == "http://host:8080/a@b"


@pytest.mark.parametrize(
    "hostile", ["token", "secret ", "password:", "api_key=", "://", "://a:", "token: '", "token\n", "aai_1_"]
)
def test_secrets_are_looked_for_in_a_text_that_wants_to_be_searched_for_ever(hostile: str) -> None:
    """An error of a body may be anything; while it was searched, the worker would not beat."""
    mask_secrets(hostile * 40_000)
    mask_secrets(hostile + " " * 200_000)
    assert "hunter2" not in mask_secrets("token" * 40_000 + "=hunter2")
