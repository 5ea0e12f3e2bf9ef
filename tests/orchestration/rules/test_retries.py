"""Whether a failed task is tried again, and when."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aaiclick.errors import EntrypointError, InputError, SignatureMismatch, ValueNotPortable, ValueTooLarge
from aaiclick.orchestration.rules.retries import GiveUp, Retry, RetryPolicy, after_failure, backoff_s

VALUE_ERROR = ["builtins.ValueError", "builtins.Exception", "builtins.BaseException", "builtins.object"]


def names(error: type[BaseException]) -> list[str]:
    return [f"{kind.__module__}.{kind.__qualname__}" for kind in error.__mro__]


def test_nothing_is_retried_unless_asked() -> None:
    assert after_failure(RetryPolicy(), 0, VALUE_ERROR, 0.5) == GiveUp("failed 1 times, max_retries is 0")


def test_attempts_are_counted() -> None:
    policy = RetryPolicy(max_retries=2)
    answers = [after_failure(policy, attempt, VALUE_ERROR, 1.0) for attempt in range(3)]
    assert answers == [Retry(1.0), Retry(2.0), GiveUp("failed 3 times, max_retries is 2")]


def test_delays_grow_up_to_the_cap() -> None:
    policy = RetryPolicy(max_retries=20, delay_s=3, factor=10, delay_s_max=100, jitter=False)
    assert [backoff_s(policy, attempt) for attempt in range(4)] == [3, 30, 100, 100]
    assert after_failure(policy, 1, VALUE_ERROR, 0.0) == Retry(30)


def test_jitter_draws_from_the_whole_delay() -> None:
    policy = RetryPolicy(max_retries=9, delay_s=8)
    assert after_failure(policy, 1, VALUE_ERROR, 0.25) == Retry(4.0)
    assert after_failure(policy, 1, VALUE_ERROR, 0.0) == Retry(0.0)


@pytest.mark.parametrize("attempt", [1_023, 1_024, 10_000, 999_999])
@pytest.mark.parametrize("factor", [2, 2.0, 1000, 1])
def test_the_ten_thousandth_attempt_has_a_delay_too(attempt: int, factor: float) -> None:
    policy = RetryPolicy(max_retries=1_000_000, factor=factor)
    assert backoff_s(policy, attempt) == (1.0 if factor == 1 else 300.0)
    assert backoff_s(RetryPolicy(delay_s=0, factor=factor), attempt) == 0.0


@given(st.integers(0, 10**6), st.floats(0, 1), st.floats(0, 1000), st.floats(1, 1000), st.floats(1000, 10**6))
def test_a_delay_is_never_longer_than_the_cap(
    attempt: int, draw: float, delay_s: float, factor: float, cap: float
) -> None:
    policy = RetryPolicy(max_retries=10**6, delay_s=delay_s, factor=factor, delay_s_max=cap)
    answer = after_failure(policy, attempt, VALUE_ERROR, draw)
    assert isinstance(answer, Retry) is (attempt < 10**6)
    if isinstance(answer, Retry):
        assert 0 <= answer.delay_s <= cap


@pytest.mark.parametrize("name", ["ValueError", "builtins.ValueError", "Exception"])
@pytest.mark.parametrize("errors", [VALUE_ERROR, ["ValueError", "Exception"]])
def test_errors_are_named_with_or_without_their_module(name: str, errors: list[str]) -> None:
    assert after_failure(RetryPolicy(max_retries=1, retry_on=(name,)), 0, errors, 1.0) == Retry(1.0)
    assert isinstance(after_failure(RetryPolicy(max_retries=1, no_retry_on=(name,)), 0, errors, 1.0), GiveUp)


def test_an_error_that_was_not_listed_is_given_up() -> None:
    policy = RetryPolicy(max_retries=5, retry_on=("httpx.HTTPError", "TimeoutError"))
    assert after_failure(policy, 0, VALUE_ERROR, 1.0) == GiveUp("builtins.ValueError is not in retry_on")
    assert after_failure(policy, 0, ["other.HTTPError"], 1.0) == GiveUp("other.HTTPError is not in retry_on")
    assert after_failure(policy, 0, ["httpx.ConnectError", "httpx.HTTPError"], 1.0) == Retry(1.0)
    assert after_failure(policy, 0, [], 1.0) == GiveUp("the error is not in retry_on")


def test_no_retry_on_wins() -> None:
    policy = RetryPolicy(max_retries=5, retry_on=("Exception",), no_retry_on=("ValueError",))
    assert after_failure(policy, 0, VALUE_ERROR, 1.0) == GiveUp("builtins.ValueError is in no_retry_on")


@pytest.mark.parametrize("error", [EntrypointError, SignatureMismatch, ValueNotPortable, ValueTooLarge])
def test_what_would_happen_again_is_not_retried(error: type[BaseException]) -> None:
    policy = RetryPolicy(max_retries=5, retry_on=("Exception",))
    assert isinstance(after_failure(policy, 0, names(error), 1.0), GiveUp)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("max_retries", -1),
        ("max_retries", 1.0),
        ("max_retries", True),
        ("max_retries", 10**7),
        ("max_retries", "3"),
        ("delay_s", -0.1),
        ("delay_s", math.nan),
        ("delay_s", math.inf),
        ("delay_s", "1"),
        ("delay_s", True),
        ("delay_s", 301),
        ("delay_s", 10**400),
        ("factor", 0.5),
        ("factor", 1e9),
        ("delay_s_max", -1),
        ("delay_s_max", math.inf),
        ("jitter", 1),
        ("retry_on", "ValueError"),
        ("retry_on", (ValueError,)),
        ("retry_on", ("not a name",)),
        ("retry_on", ("",)),
        ("no_retry_on", (5,)),
        ("no_retry_on", None),
    ],
)
def test_a_bad_policy_is_refused(field: str, value: Any) -> None:
    with pytest.raises(InputError) as caught:
        RetryPolicy(**{field: value})
    assert str(caught.value).startswith(f"{field}: ")


def test_a_class_gets_told_its_name() -> None:
    with pytest.raises(InputError, match=r"builtins\.TimeoutError"):
        RetryPolicy(retry_on=(TimeoutError,))  # type: ignore[arg-type]


def test_the_default_policy_takes_no_room() -> None:
    assert RetryPolicy().to_json() is None
    assert RetryPolicy.from_json(None) == RetryPolicy()


@pytest.mark.parametrize(
    "policy",
    [
        RetryPolicy(max_retries=3),
        RetryPolicy(max_retries=1, delay_s=0.25, factor=3, delay_s_max=60, jitter=False),
        RetryPolicy(retry_on=("ValueError", "httpx.HTTPError"), no_retry_on=["KeyError"]),  # type: ignore[arg-type]
    ],
)
def test_a_policy_comes_back_as_it_was(policy: RetryPolicy) -> None:
    text = policy.to_json()
    assert text is not None
    assert RetryPolicy.from_json(text) == policy
    assert hash(RetryPolicy.from_json(text)) == hash(policy)


def test_only_what_differs_is_written() -> None:
    assert RetryPolicy(max_retries=3).to_json() == '{"max_retries":3}'


@pytest.mark.parametrize("given", [{"retries": 3}, [], {"max_retries": -1}])
def test_a_text_that_is_no_policy_is_refused(given: Any) -> None:
    with pytest.raises(InputError):
        RetryPolicy.from_json(json.dumps(given))
