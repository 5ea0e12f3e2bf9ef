"""The options `cache` and `idempotency_key`: what they take, refuse, and how they are stored."""

from __future__ import annotations

from datetime import timedelta
from itertools import product
from typing import Any

import pytest

from aaiclick.errors import InputError
from aaiclick.orchestration.rules.cache_policies import (
    Cache,
    KeyFunction,
    Remembering,
    cache_of,
    check_template,
    key_text,
)


@pytest.mark.parametrize(
    ("option", "policy"),
    [
        (None, None),
        (False, None),
        (True, Cache()),
        (60, Cache(ttl=60)),
        (0.5, Cache(ttl=0.5)),
        (timedelta(hours=1), Cache(ttl=timedelta(hours=1))),
        (Cache(version=2), Cache(version=2)),
    ],
)
def test_an_option_is_short_for_a_policy(option: Any, policy: Cache | None) -> None:
    assert cache_of(option) == policy


@pytest.mark.parametrize("option", ["yes", [], {}, object()])
def test_anything_else_is_refused(option: Any) -> None:
    with pytest.raises(InputError, match="cache"):
        cache_of(option)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *product(["ttl"], [0, -1, timedelta(0), "1h", True, float("nan")]),
        *product(["version"], [1.5, True, []]),
        *product(["key"], ["", 5, "{", "{a"]),
        *product(["scope"], ["jobs", None]),
        ("refresh", 1),
    ],
)
def test_what_no_cache_could_follow_is_refused(field: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"cache.{field}"):
        Cache(**{field: value})


def test_both_options_at_once_are_refused() -> None:
    with pytest.raises(InputError, match="one of them"):
        Remembering(Cache(), "charge-{x}")


@pytest.mark.parametrize(
    "options",
    [
        Remembering(),
        Remembering(Cache()),
        Remembering(Cache(ttl=5, version="a", key="{x}", scope="job", refresh=True)),
        Remembering(Cache(key=KeyFunction("a.b"))),
        Remembering(idempotency_key="charge-{x}"),
        Remembering(idempotency_key=KeyFunction("a.b")),
    ],
)
def test_options_are_stored_and_read(options: Remembering) -> None:
    assert Remembering.from_json(options.to_json()) == options


def test_a_timedelta_is_stored_in_seconds() -> None:
    stored = Remembering.from_json(Remembering(Cache(ttl=timedelta(minutes=1))).to_json())
    assert stored.cache is not None
    assert stored.cache.ttl_s == 60.0


def test_a_function_is_stored_by_its_name_only() -> None:
    with pytest.raises(InputError, match="a template, or a function given to"):
        Remembering(idempotency_key=str).to_json()
    with pytest.raises(InputError, match="2000 characters"):
        Remembering(idempotency_key="x" * 2000).to_json()


def test_a_template_names_parameters() -> None:
    check_template("cache.key", "{a.b}-{c[0]}-{d:05}-{{e}}", ["a", "c", "d"])
    with pytest.raises(InputError, match="a, b"):
        check_template("cache.key", "{x}", ["a", "b"])


def test_keys_are_made_of_the_arguments() -> None:
    assert key_text("key", "{a}-{b:03}", {"a": "x", "b": 5}) == "x-005"
    assert key_text("key", lambda a, b: f"{a}{b}", {"a": "x", "b": 5}) == "x5"


@pytest.mark.parametrize("made", ["", " ", "a\nb", "x" * 201, 5, None])
def test_a_key_has_the_form_of_any_key(made: Any) -> None:
    with pytest.raises(InputError, match="idempotency_key"):
        key_text("idempotency_key", lambda: made, {})


def test_a_template_whose_argument_was_left_out_says_so() -> None:
    with pytest.raises(InputError, match="'b'"):
        key_text("key", "{a}-{b}", {"a": 1})
