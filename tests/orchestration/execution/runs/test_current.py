"""What a body may ask about its run."""

from __future__ import annotations

import dataclasses
import threading

import pytest

from aaiclick.errors import NoContext
from aaiclick.orchestration.execution.runs.current import RUNNING, Running, cancel_requested, get_current_run, occupy
from tests.support import bodies


def test_outside_of_a_run_there_is_none() -> None:
    with pytest.raises(NoContext, match="in the body of a task"):
        get_current_run()
    assert not cancel_requested()


def test_a_run_knows_itself_and_cannot_be_changed() -> None:
    claim = bodies.claim_of(bodies.nothing)
    token = RUNNING.set(Running(claim, log_path="here.log"))
    run = get_current_run()
    RUNNING.reset(token)
    assert dataclasses.astuple(run) == (
        claim.task_id, 9, bodies.EPOCH, 1, "nothing", f"{claim.task_id}-0", "here.log", {},
    )  # fmt: skip
    with pytest.raises(dataclasses.FrozenInstanceError):
        run.epoch = 5  # type: ignore[misc]


def test_once_it_was_asked_to_stop_a_run_stays_asked() -> None:
    answers = [False, True]
    running = Running(bodies.claim_of(bodies.nothing))
    running.poll = lambda: answers.pop(0)
    token = RUNNING.set(running)
    assert [cancel_requested() for _ in range(4)] == [False, True, True, True]
    RUNNING.reset(token)


def test_threads_of_a_process_that_does_nothing_else_know_the_run_too() -> None:
    seen: list[int] = []
    occupy(Running(bodies.claim_of(bodies.nothing)))
    thread = threading.Thread(target=lambda: seen.append(get_current_run().job_id))
    thread.start()
    thread.join()
    occupy(None)
    assert seen == [9]
    with pytest.raises(NoContext):
        get_current_run()
