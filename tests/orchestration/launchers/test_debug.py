"""`job_test` and its sisters: what they take, what they give back, what they leave behind."""

from __future__ import annotations

import asyncio
import bdb
import io
import pdb  # noqa: T100 (what people meet is replaced here)
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aaiclick.config import reset_settings
from aaiclick.errors import InputError, NotFound, RunningLoop, SignatureMismatch
from aaiclick.orchestration import (
    Job,
    ajob_test,
    count_jobs,
    create_job,
    get_job,
    get_runs_for_task,
    get_tasks_for_job,
    job_test,
    list_jobs,
    list_workers,
)
from aaiclick.orchestration.execution.job_loop import JobLoop
from aaiclick.orchestration.launchers import debug
from tests.orchestration import sample_flows as flows
from tests.support.front_door import local, state

__all__ = ["local", "state"]


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AAICLICK_LOG_DIR", str(tmp_path / "logs"))
    reset_settings()
    return tmp_path / "logs"


@pytest.mark.parametrize(
    "run",
    [
        lambda: job_test(flows.pipeline(x=3, y=4)),
        lambda: job_test(flows.pipeline, x=3, y=4),
        lambda: job_test(flows.pipeline, 3, y=4),
        lambda: flows.pipeline(x=3, y=4).test(),
        lambda: asyncio.run(ajob_test(flows.pipeline, x=3, y=4)),
    ],
)
def test_a_job_is_run_in_any_spelling(local: object, run: Callable[[], Job]) -> None:
    finished = run()
    assert (finished.status, finished.completed_tasks, finished.error) == ("completed", 2, None)
    assert finished.result == [7, 12]


def test_a_job_that_is_given_is_brought_up_to_date(state: str) -> None:
    for run in (job_test, Job.test):
        made = flows.pipeline(x=3, y=4)
        assert [task.status for task in made.tasks] == ["pending", "pending"]
        assert run(made) is made
        assert (made.status, made.completed_tasks) == ("completed", 2)
        assert [task.status for task in made.tasks] == ["completed", "completed"]
        assert made.completed_at is not None


def test_each_run_has_a_log_and_prints_as_usual(state: str, capfd: pytest.CaptureFixture[str], logs: Path) -> None:
    finished = job_test(flows.prints_and_logs, "a line")
    said = capfd.readouterr()
    assert said.out == "a line\n"
    assert said.err == "an error\n"
    (task,) = finished.tasks
    (run,) = asyncio.run(get_runs_for_task(task.id))
    assert task.log_path == run.log_path == str(logs / f"{task.id}.{run.epoch}.log")
    assert Path(run.log_path or "").read_text() == "a line\nan error\nWARNING flows: watch out\n"
    assert finished.result == run.log_path


def test_a_run_that_prints_nothing_has_a_log_too(local: Path) -> None:
    (task,) = job_test(flows.single, 1).tasks
    assert Path(task.log_path or "").read_text() == ""


def test_a_failed_job_is_returned_and_not_raised(state: str) -> None:
    finished = job_test(flows.runs, "fail", message="oh")
    assert (finished.status, finished.error) == ("failed", "ValueError: oh")


def test_a_job_that_ended_is_returned_as_it_is(state: str) -> None:
    for finished in (job_test(flows.single, 1), job_test(flows.runs, "fail")):
        again = job_test(finished)
        facts = (
            "id",
            "status",
            "error",
            "started_at",
            "completed_at",
            "completed_tasks",
            "failed_tasks",
            "result_json",
        )
        assert [getattr(again, fact) for fact in facts] == [getattr(finished, fact) for fact in facts]


def test_a_job_without_tasks_stays_pending(state: str) -> None:
    assert job_test(asyncio.run(create_job("later", tasks=[]))).status == "pending"


@pytest.mark.parametrize("wrong", [5, "pipeline", None, flows.add, flows.plain, [flows.single]], ids=repr)
def test_anything_but_a_job_is_refused(local: object, wrong: Any) -> None:
    with pytest.raises(InputError, match="it must be a Job, or a function marked @job"):
        job_test(wrong)


def test_arguments_for_a_job_that_has_them_are_refused(local: object) -> None:
    made = flows.single(1)
    with pytest.raises(InputError, match="submitted with its own"):
        job_test(made, x=2)  # type: ignore[call-overload]
    with pytest.raises(SignatureMismatch, match="unexpected: 'y'"):
        job_test(flows.single, y=2)  # type: ignore[call-overload]


def test_a_job_of_another_database_is_not_found(state: str) -> None:
    with pytest.raises(NotFound, match="Was it submitted to this database"):
        job_test(Job(id=5, name="elsewhere"))


async def test_inside_a_running_loop_it_says_what_to_await_and_that_works(local: object) -> None:
    made = await flows.single.submit(5)
    for call in (lambda: job_test(made), made.test, lambda: job_test(flows.single, 5)):
        with pytest.raises(RunningLoop, match=r"await ajob_test\("):
            call()
    assert (await ajob_test(made)).result == 5


def test_the_worker_it_was_is_gone_afterwards(state: str) -> None:
    job_test(flows.single, 1)
    with pytest.raises(InputError):
        job_test(5)  # type: ignore[call-overload]
    workers = asyncio.run(_workers())
    assert {(worker.name, worker.status) for worker in workers} == {("job_test", "stopped")}


async def _workers() -> Any:
    return await list_workers()


def test_a_key_that_is_known_runs_the_job_of_that_key(state: str) -> None:
    keyed = flows.single.options(key="once")
    made = keyed(x=1)
    assert job_test(keyed, x=1).id == made.id
    assert job_test(keyed, x=1).status == "completed"
    assert asyncio.run(count_jobs()) == 1


def test_an_interrupt_in_a_coroutine_cancels_the_job_and_is_passed_on(local: object) -> None:
    with pytest.raises(KeyboardInterrupt):
        job_test(flows.runs, "interrupts")
    (made,) = asyncio.run(list_jobs())
    assert made.status == "cancelled"


async def test_cancelling_the_one_who_waits_cancels_the_job(state: str) -> None:
    key = "waiting is cancelled" + state
    made = await flows.runs.submit("waits", key=key)
    running = asyncio.create_task(ajob_test(made))
    await flows.noted(key)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    found = await get_job(made.id)
    assert found is not None
    assert found.status == "cancelled"
    assert [task.status for task in await get_tasks_for_job(made.id)] == ["cancelled"]
    assert flows.SEEN[key] == ["began", "stopped"]


# ---------------------------------------------------------------- terminal and debugger


def test_progress_is_drawn_on_a_terminal_only(
    local: object, capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    job_test(flows.single, 1)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys, "stderr", stream := io.StringIO())
    monkeypatch.setattr(stream, "isatty", lambda: True)
    job_test(flows.single, 1)
    assert "single  " + "█" * 30 + "  1/1  completed\n" in stream.getvalue()


def test_what_bodies_print_reaches_stdout(local: object) -> None:
    code = """
import asyncio, logging, sys
from aaiclick.orchestration import job_test
from tests.orchestration.sample_flows import runs
sys.modules["tests.orchestration.sample_flows"].plain = lambda: print("printed by a body")
from aaiclick.orchestration.models import Task
from aaiclick.orchestration import job
@job
def flow(): Task("tests.orchestration.sample_flows.plain")
print(job_test(flow).status)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "printed by a body\ncompleted\n"


def test_with_a_debugger_an_exception_is_met_where_it_happened(
    local: object, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    met: list[str] = []

    def post_mortem(traceback: Any) -> None:
        while traceback.tb_next is not None:
            traceback = traceback.tb_next
        met.append(traceback.tb_frame.f_code.co_name)

    monkeypatch.setattr(pdb, "post_mortem", post_mortem)
    assert job_test(flows.runs, "fail", debugger=True, message="oh").status == "failed"
    assert job_test(flows.runs, "raises_on_a_thread", debugger=True, kind="Unspeakable").status == "failed"
    assert met == ["fail", "raises_on_a_thread"]
    assert "raised ValueError: oh" in capsys.readouterr().err


def test_leaving_the_debugger_does_not_leave_the_job_running(local: object, monkeypatch: pytest.MonkeyPatch) -> None:
    def quit_at_once(traceback: Any) -> None:
        raise bdb.BdbQuit

    monkeypatch.setattr(pdb, "post_mortem", quit_at_once)
    with pytest.raises(bdb.BdbQuit):
        job_test(flows.runs, "fail", debugger=True)
    (made,) = asyncio.run(list_jobs())
    assert made.status == "cancelled"


def test_it_has_no_slots_for_tasks_of_others(local: object) -> None:
    job_test(flows.single, 1)
    (worker,) = asyncio.run(list_workers())
    assert (worker.name, worker.concurrency) == ("job_test", 0)


def test_with_a_debugger_bodies_run_one_at_a_time_in_this_thread(
    local: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    loops: list[int] = []
    real = JobLoop

    def noted(*args: Any, **facts: Any) -> Any:
        loops.append(facts["concurrency"])
        return real(*args, **facts)

    monkeypatch.setattr(debug, "JobLoop", noted)
    job_test(flows.fan, 2, debugger=True)
    job_test(flows.fan, 2)
    assert loops == [1, debug.CONCURRENCY]
