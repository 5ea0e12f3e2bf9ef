"""Executors in entrypoints: told apart from functions, with marks and without."""

from __future__ import annotations

import pytest

from aaiclick.errors import InputError
from aaiclick.orchestration.rules.naming.executor_names import (
    check_executor,
    executor_of,
    function_in,
    is_name,
    last_name,
    with_executor,
)


@pytest.mark.parametrize(
    ("entrypoint", "executor", "function", "name"),
    [
        ("app.load", "python", "app.load", "load"),
        ("@app.load", "python", "app.load", "load"),
        ("shell:", "shell", "", "shell"),
        ("@shell:", "shell", "", "shell"),
        ("shell:app.load", "shell", "app.load", "load"),
        ("~rest:app.flows.load", "rest", "app.flows.load", "load"),
    ],
)
def test_the_parts_of_an_entrypoint(entrypoint: str, executor: str, function: str, name: str) -> None:
    assert (executor_of(entrypoint), function_in(entrypoint), last_name(entrypoint)) == (executor, function, name)


def test_an_executor_is_put_behind_the_mark() -> None:
    assert with_executor("shell", "@app.load") == "@shell:app.load"
    assert with_executor("shell", "rest:app.load") == "shell:app.load"
    assert with_executor("python", "app.load") == "app.load"
    assert with_executor("shell", "") == "shell:"


def test_the_form() -> None:
    assert all(map(is_name, ("app.load", "shell:", "shell:app.load", "load")))
    assert not any(map(is_name, ("", ":", "a:b:", "-x:", "shell:-x", "app load", "app.", "a b:c")))


def test_older_names_are_accepted() -> None:
    assert [check_executor(name) for name in ("shell", "rest_executor", "docker_executor", "mine")] == [
        *("shell", "rest", "docker", "mine"),
    ]
    for name in ("", "a b", "a:b", None, 3, "größe", "x" * 51):
        with pytest.raises(InputError, match="executor"):
            check_executor(name)
