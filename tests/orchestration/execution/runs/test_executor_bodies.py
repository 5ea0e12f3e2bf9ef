"""Bodies of executors: alone, or told by a function what to do."""

from __future__ import annotations

from typing import Any

import pytest

from aaiclick.errors import InputError, SignatureMismatch
from aaiclick.executors import shell_command
from aaiclick.orchestration import Secret
from aaiclick.orchestration.execution.runs.executor_bodies import through_executor


def words(first: str) -> list[str]:
    return ["echo", first]


async def options(first: str) -> dict[str, Any]:
    return {"argv": 'echo "$WORD"', "env": {"WORD": first}}


def secret() -> dict[str, Any]:
    return {"argv": 'echo "${#WORD}"', "env": {"WORD": Secret("env:ROSEBUD")}}


def nothing() -> None: ...


def wrong() -> dict[str, Any]:
    return {"argv": ["echo"], "arg": 1}


def told(function: Any) -> Any:
    return through_executor("shell", f"shell:{__name__}.{function.__name__}", function)


async def test_a_function_tells_it_by_the_first_option_or_by_all() -> None:
    assert await told(words)(first="hi") == "hi"
    assert await told(options)(first="hi") == "hi"


async def test_a_secret_among_its_options_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROSEBUD", "0123456789")
    assert await told(secret)() == "10"


async def test_what_it_cannot_do_is_refused() -> None:
    with pytest.raises(InputError, match="returns what the executor is to do"):
        await told(nothing)()
    with pytest.raises(SignatureMismatch, match="arg"):
        await told(wrong)()


def test_alone_it_is_the_body() -> None:
    assert through_executor("shell", "shell:", shell_command.run) is shell_command.run
