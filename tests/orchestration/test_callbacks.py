"""Callbacks: what their annotations tell, and how they are called."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypedDict

import pytest

from aaiclick.config import reset_settings
from aaiclick.errors import EntrypointError
from aaiclick.orchestration.callbacks import (
    ROWS_AWAITED,
    Loaded,
    call_for_rows,
    call_once,
    load_callback,
    name_callback,
    returned_fields,
)
from tests.orchestration import operator_flows as flows

if TYPE_CHECKING:
    from nowhere import Unknown  # type: ignore[import-not-found]


class Row(TypedDict):
    name: str
    age: int | None


class DatedRow(TypedDict):
    name: str
    at: datetime | None


def as_int(x) -> int: ...  # type: ignore[empty-body]
def as_text(x) -> str | None: ...
def as_list(x) -> list[float]: ...  # type: ignore[empty-body]
def as_moment(x) -> datetime: ...  # type: ignore[empty-body]
def as_row(x) -> Row: ...  # type: ignore[empty-body]
def as_dated_row(x) -> DatedRow: ...  # type: ignore[empty-body]
def as_dict(x) -> dict[str, int]: ...  # type: ignore[empty-body]
def as_any(x) -> Any: ...
def as_unknown(x) -> Unknown: ...
def as_object(x) -> object: ...
def as_nothing(x): ...
async def as_int_later(x) -> int: ...  # type: ignore[empty-body]


@pytest.mark.parametrize(
    ("function", "fields"),
    [
        (as_int, {"value": "Int64"}),
        (as_int_later, {"value": "Int64"}),
        (as_text, {"value": "Nullable(String)"}),
        (as_list, {"value": "Array(Float64)"}),
        (as_moment, {}),
        (as_dated_row, {}),
        (as_row, {"name": "String", "age": "Nullable(Int64)"}),
        (as_dict, {}),
        (as_any, {}),
        (as_unknown, {}),
        (as_object, {}),
        (as_nothing, {}),
    ],
)
def test_an_annotation_tells_the_columns(function: Any, fields: dict[str, str]) -> None:
    assert returned_fields(function) == fields


def test_a_marked_function_brings_its_options() -> None:
    loaded = load_callback(f"{flows.__name__}.fails_once")
    assert loaded.function is flows.fails_once.function
    assert (loaded.options["max_retries"], loaded.options["timeout_s"]) == (3, 50)
    assert load_callback(f"{flows.__name__}.double").options == {}


def test_a_module_that_is_missing_here_may_be_where_the_workers_are(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EntrypointError, match="no module"):
        name_callback("nosuchmodule.function", 1, (), {})
    monkeypatch.setenv("AAICLICK_CH_URL", "clickhouse://example.invalid:8123/x")
    reset_settings()
    assert name_callback("nosuchmodule.function", 1, (), {}) == "nosuchmodule.function"
    monkeypatch.undo()
    reset_settings()


def loaded(function: Any) -> Loaded:
    return Loaded("flow.function", function, {})


def gives_coroutine(x: int) -> Any:
    return flows.later(x)


def fails_at_three(x: int, add: int = 0) -> int:
    if x == 3:
        raise ValueError("three")
    return x + add


async def fails_later(x: int, add: int = 0) -> int:
    return fails_at_three(x, add)


@pytest.mark.parametrize("function", [fails_at_three, fails_later])
@pytest.mark.parametrize(("args", "kwargs"), [((), {}), ((1,), {}), ((), {"add": 1})])
async def test_every_row_is_called_for_and_an_error_names_its_row(
    function: Any, args: tuple[int, ...], kwargs: dict[str, int]
) -> None:
    more = 1 if args or kwargs else 0
    assert await call_for_rows(loaded(function), [1, 2, 4], 10, args, kwargs) == [1 + more, 2 + more, 4 + more]
    with pytest.raises(ValueError, match="three") as caught:
        await call_for_rows(loaded(function), [1, 2, 3, 4], 10, args, kwargs)
    assert caught.value.__notes__ == ["flow.function was called for row 12 (counted from 0): 3"]


async def test_a_plain_function_may_give_a_coroutine() -> None:
    assert await call_for_rows(loaded(gives_coroutine), [1, 2], 0, (), {}) == [2, 4]
    assert await call_once(loaded(gives_coroutine), 4) == 8
    assert await call_once(loaded(flows.scaled), 4, by=3) == 12


def ends_early(x: int) -> int:
    return next(iter(range(x, 3)))


async def test_a_callback_that_raises_stop_iteration_fails_and_does_not_hang() -> None:
    """A future refuses that exception: the part would wait for ever."""
    async with asyncio.timeout(30):
        with pytest.raises(RuntimeError, match=r"flow\.function raised StopIteration") as caught:
            await call_for_rows(loaded(ends_early), [1, 2, 3], 10, (), {})
        with pytest.raises(RuntimeError, match=r"flow\.function raised StopIteration"):
            await call_once(loaded(ends_early), 3)
    assert caught.value.__notes__ == ["flow.function was called for row 12 (counted from 0): 3"]


async def test_several_rows_are_awaited_at_the_same_time_and_come_in_their_order() -> None:
    under_way, most = 0, 0

    async def waits(row: int) -> int:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        for _ in range(40 - row):
            await asyncio.sleep(0)
        under_way -= 1
        return row * 2

    assert await call_for_rows(Loaded("waits", waits, {}), list(range(40)), 0, (), {}) == [2 * n for n in range(40)]
    assert most == ROWS_AWAITED


@pytest.mark.parametrize("raised", [ValueError, SystemExit, asyncio.CancelledError, StopAsyncIteration])
async def test_the_first_error_ends_what_is_under_way(raised: type[BaseException]) -> None:
    begun: list[int] = []
    ended: list[int] = []

    async def fails(row: int) -> None:
        begun.append(row)
        if row == 3:
            raise raised("no")
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(row)

    with pytest.raises((raised, RuntimeError)) as caught:
        await call_for_rows(Loaded("fails", fails, {}), list(range(100)), 1000, (), {})
    assert "row 1003" in caught.value.__notes__[0]
    assert begun == [0, 1, 2, 3]
    assert ended == [0, 1, 2]


async def test_who_is_cancelled_leaves_no_row_under_way() -> None:
    ended: list[int] = []

    async def waits(row: int) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(row)

    calls = asyncio.ensure_future(call_for_rows(Loaded("waits", waits, {}), list(range(3)), 0, (), {}))
    for _ in range(5):
        await asyncio.sleep(0)
    calls.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calls
    assert ended == [0, 1, 2]
