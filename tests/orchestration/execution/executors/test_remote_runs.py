"""Runs that are elsewhere are watched, stopped and judged alike, whatever their transport does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from aaiclick.backend import get_logs_dir
from aaiclick.orchestration.execution.executors.remote_runs import RemoteRuns
from aaiclick.orchestration.execution.executors.transport import Lost, NeverBegan, Outcome
from aaiclick.orchestration.execution.executors.wire import Ended
from aaiclick.orchestration.execution.logs.run_logs import RunLog
from aaiclick.orchestration.models import Claim, Done, Report
from tests.support import bodies
from tests.support.bodies import claim_of, failure_in, log_of


class Scripted:
    """Notes what it is told, and comes back at the word that the test chose."""

    def __init__(self, ends_at: str) -> None:
        self.ends_at = ends_at
        self.spent = False
        self.heard: list[str] = []
        self.began = asyncio.Event()
        self.answer: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()

    def ask(self) -> None:
        self._hear("ask")

    def tell(self) -> None:
        self._hear("tell")

    def kill(self) -> None:
        self._hear("kill")

    def _hear(self, word: str) -> None:
        self.heard.append(word)
        if word == self.ends_at and not self.answer.done():
            self.answer.set_result(Lost("it was told to"))


async def finish(runs: RemoteRuns, claim: Claim, transport: Scripted, log: RunLog) -> Report:
    transport.began.set()
    return await runs.finish(claim, transport, transport.answer)


def begun(runs: RemoteRuns, claim: Claim, transport: Scripted) -> asyncio.Task[Report]:
    return asyncio.create_task(runs.run(claim, partial(finish, runs, claim, transport)))


async def cancelled(task: asyncio.Task[Report], transport: Scripted) -> None:
    await transport.began.wait()
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()


@pytest.mark.parametrize(
    ("ends_at", "heard"), [("ask", ["ask"]), ("tell", ["ask", "tell"]), ("kill", ["ask", "tell", "kill"])]
)
async def test_a_run_that_is_cancelled_is_asked_then_told_then_killed(ends_at: str, heard: list[str]) -> None:
    transport = Scripted(ends_at)
    await cancelled(begun(RemoteRuns(), claim_of(bodies.nothing), transport), transport)
    assert transport.heard == heard


async def test_where_there_is_no_time_left_it_is_killed() -> None:
    transport = Scripted("kill")
    await cancelled(begun(RemoteRuns(lambda: 0.0), claim_of(bodies.nothing), transport), transport)
    assert transport.heard == ["kill"]


async def test_whoever_has_no_patience_kills_what_is_being_stopped(
    change_settings: Callable[..., Any],
) -> None:
    change_settings(CANCEL_GRACE_SECONDS=600)
    runs, transport = RemoteRuns(), Scripted("kill")
    task = begun(runs, claim_of(bodies.nothing), transport)
    await transport.began.wait()
    task.cancel()
    while not transport.heard:  # noqa: ASYNC110 (it is asked in the next turns of the loop)
        await asyncio.sleep(0)
    runs.kill()
    await asyncio.wait([task])
    assert (task.cancelled(), transport.heard) == (True, ["ask", "kill"])
    again = Scripted("kill")
    await cancelled(begun(runs, claim_of(bodies.nothing), again), again)
    assert again.heard == ["kill"]


async def test_a_run_that_takes_too_long_is_stopped_and_the_limit_is_what_it_failed_of() -> None:
    claim, transport = claim_of(bodies.nothing, timeout_s=0.05), Scripted("tell")
    failure = failure_in(await begun(RemoteRuns(), claim, transport))
    assert failure.error == "TaskTimeout: The task ran longer than its limit of 0.05 s."
    assert not failure.crashed
    assert transport.heard == ["ask", "tell"]
    assert log_of(failure) == "[aaiclick] The task ran longer than its limit of 0.05 s.\n"


async def test_a_run_that_is_lost_has_crashed_and_its_log_says_why() -> None:
    claim, transport = claim_of(bodies.nothing), Scripted("")
    transport.answer.set_result(Lost("the cable was cut", "Mend it."))
    failure = failure_in(await begun(RemoteRuns(), claim, transport))
    assert failure.crashed
    assert failure.error == "TaskCrashed: The process that ran the task died: the cable was cut. Mend it."
    assert log_of(failure) == "[aaiclick] The process that ran the task died: the cable was cut. Mend it.\n"


@pytest.mark.parametrize("error", [NeverBegan(cause="no room"), OSError("no room")])
async def test_a_run_that_never_began_has_crashed(error: Exception) -> None:
    async def fails(log: RunLog) -> Report:
        raise error

    failure = failure_in(await RemoteRuns().run(claim_of(bodies.nothing), fails))
    assert failure.crashed
    assert failure.error.startswith("TaskCrashed: The process that ran the task died: it never began (")
    assert "no room" in failure.error


@pytest.mark.parametrize("said", [Ended(None, None, False), Ended(Done(1, 1), None, False)])
async def test_a_report_of_something_else_is_none_and_who_said_it_is_not_used_again(said: Ended) -> None:
    transport = Scripted("")
    transport.answer.set_result(said)
    failure = failure_in(await begun(RemoteRuns(), claim_of(bodies.nothing), transport))
    assert "its report could not be decoded" in failure.error
    assert transport.spent


async def test_the_log_of_a_run_that_was_cancelled_says_so() -> None:
    claim, transport = claim_of(bodies.nothing), Scripted("ask")
    await cancelled(begun(RemoteRuns(), claim, transport), transport)
    assert await asyncio.to_thread(Path(get_logs_dir(), f"{claim.task_id}.log").read_text) == "[aaiclick] cancelled\n"
