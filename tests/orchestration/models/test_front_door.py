"""How models reach the functions that people call."""

import pytest

import aaiclick.orchestration
from aaiclick.orchestration.models.front_door import ask, front_door

# What the models ask for by name.
ASKED_FOR = [
    "job_test",
    "load_job_tasks",
    "load_job_groups",
    "load_job_result",
    "load_group_tasks",
    "load_child_groups",
    "wait_for_this",
]


@pytest.mark.parametrize("name", ASKED_FOR)
def test_what_the_models_ask_for_is_there(name: str) -> None:
    assert front_door(name) is getattr(aaiclick.orchestration, name)


async def answer(question: str) -> str:
    return f"{question}!"


def test_what_must_be_awaited_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aaiclick.orchestration, "answer", answer, raising=False)
    assert ask("answer", "so") == "so!"


async def test_and_inside_a_running_loop_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aaiclick.orchestration, "answer", answer, raising=False)
    assert ask("answer", "so") == "so!"


def test_a_name_that_is_not_there_is_said_so() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        front_door("no_such_name")
