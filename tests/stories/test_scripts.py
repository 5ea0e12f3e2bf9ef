"""Scripts, packages, notebooks, threads and forks: wherever workflows are written, they work or say why not."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import aaiclick
from aaiclick.errors import NoContext, RunningLoop
from aaiclick.orchestration import (
    Context,
    Task,
    ajob_test,
    count_jobs,
    create_job,
    get_current_context,
    get_task,
    job_test,
    list_jobs,
)
from tests.orchestration import sample_flows as flows
from tests.support import warm
from tests.support.front_door import local

__all__ = ["local"]

ROOT = Path(aaiclick.__path__[0]).parent

FLOW = """
from aaiclick.orchestration import job, task, job_test, TaskResult

@task
async def add(a: int, b: int) -> int:
    return a + b

@task
def multiply(x: int, y: int) -> int:
    return x * y

@job("pipeline")
def pipeline(x: int, y: int):
    return TaskResult(tasks=[add(a=x, b=y), multiply(x=x, y=y)])
"""
RUN = """
j = pipeline(x=3, y=4)
finished = job_test(j)
print(finished.status, finished.result, [t.entrypoint for t in finished.tasks])
"""
SUBMIT = "\nprint(pipeline(x=3, y=4).id)\n"
GUARD = '\nif __name__ == "__main__":\n    print(pipeline(x=3, y=4).id)\n'

RUN_BY_ID = """
import asyncio, sys
from aaiclick.orchestration import count_jobs, get_job, job_test
finished = job_test(asyncio.run(get_job(int(sys.argv[1]))))
print(finished.status, finished.error or finished.result, asyncio.run(count_jobs()))
"""


def python(*arguments: str, cwd: Path, root: Path, ok: bool = True, stdin: str | None = None) -> str:
    """What a Python of its own prints, run there with that local root."""
    env = {**os.environ, "AAICLICK_LOCAL_ROOT": str(root), "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    env.pop("AAICLICK_SQL_URL", None)
    done = warm.run(
        [sys.executable, *arguments], cwd=cwd, env=env, input=stdin, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode == 0) is ok, done.stderr
    return (done.stdout if ok else done.stderr).strip()


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A directory to write scripts into."""
    (tmp_path / "here").mkdir()
    return tmp_path / "here"


# ---------------------------------------------------------------- scripts


def test_a_script_runs_its_own_functions_under_its_own_name(here: Path, local: Path) -> None:
    (here / "flow.py").write_text(FLOW + RUN)
    said = "completed [7, 12] ['flow.add', 'flow.multiply']"
    assert python("flow.py", cwd=here, root=local) == said
    assert python(str(here / "flow.py"), cwd=here.parent, root=local) == said
    assert python("-m", "flow", cwd=here, root=local) == said


def test_a_module_of_a_package_runs_under_its_full_name(here: Path, local: Path) -> None:
    (here / "pkg").mkdir()
    (here / "pkg/__init__.py").touch()
    (here / "pkg/flow.py").write_text(FLOW + RUN)
    said = "completed [7, 12] ['pkg.flow.add', 'pkg.flow.multiply']"
    assert python("-m", "pkg.flow", cwd=here, root=local) == said


def test_what_a_script_submitted_is_run_by_another_process(here: Path, local: Path) -> None:
    (here / "flow.py").write_text(FLOW + GUARD)
    job_id = python("flow.py", cwd=here, root=local)
    assert python("-c", RUN_BY_ID, job_id, cwd=here, root=local) == "completed [7, 12] 1"


def test_what_a_package_submitted_is_run_by_another_process(here: Path, local: Path) -> None:
    (here / "pkg").mkdir()
    (here / "pkg/flow.py").write_text(FLOW + GUARD)
    job_id = python("-m", "pkg.flow", cwd=here, root=local)
    assert python("-c", RUN_BY_ID, job_id, cwd=here, root=local) == "completed [7, 12] 1"


def test_a_script_without_a_guard_is_not_submitted_again_by_whoever_imports_it(here: Path, local: Path) -> None:
    (here / "flow.py").write_text(FLOW + SUBMIT)
    job_id = python("flow.py", cwd=here, root=local)
    said = python("-c", RUN_BY_ID, job_id, cwd=here, root=local)
    assert said.startswith("failed EntrypointError: flow.add cannot be run: importing flow raised SubmitDuringImport")
    assert 'if __name__ == "__main__":' in said
    assert said.endswith(" 1")


def test_a_script_that_runs_itself_without_a_guard_is_not_run_again(here: Path, local: Path) -> None:
    (here / "flow.py").write_text(FLOW + "\nprint(job_test(pipeline, x=3, y=4).id)\n")
    (here / "other.py").write_text(
        "from aaiclick.orchestration.submitting.entrypoints import resolve\nresolve('flow.add')\n"
    )
    python("flow.py", cwd=here, root=local)
    said = python("other.py", cwd=here, root=local, ok=False)
    assert "job_test(…) was called while a worker imported flow" in said
    assert asyncio.run(count_jobs()) == 1


def test_the_example_of_the_package_runs(here: Path, local: Path) -> None:
    example = "aaiclick.orchestration.examples.orchestration_basic"
    assert python("-m", example, cwd=here, root=local) == "completed [7, 12]"


@pytest.mark.parametrize("way", [["-c", FLOW + RUN], ["-"]])
def test_what_no_worker_could_import_says_so(here: Path, local: Path, way: list[str]) -> None:
    said = python(*way, cwd=here, root=local, ok=False, stdin=FLOW + RUN)
    assert "EntrypointError: __main__.add cannot be run: it is defined in an interactive session" in said
    assert said.endswith("Or run the workflow in this process: job_test(workflow, …).")


HERE = """
finished = job_test(pipeline, x=3, y=4)
print(finished.status, finished.result, [t.entrypoint for t in finished.tasks])
"""
CELLS = """
import asyncio
from aaiclick.errors import EntrypointError
from aaiclick.orchestration import ajob_test

async def cell():
    finished = await ajob_test(pipeline, x=3, y=4)
    print(finished.status, finished.result, [t.entrypoint for t in finished.tasks])
    try:
        await pipeline(x=3, y=4)
    except EntrypointError as error:
        print(error)

asyncio.run(cell())
"""


@pytest.mark.parametrize("way", [["-c", FLOW + HERE], ["-"], ["my-flow.py"]])
def test_what_no_worker_could_import_runs_in_the_process_that_has_it(here: Path, local: Path, way: list[str]) -> None:
    (here / "my-flow.py").write_text(FLOW + HERE)
    said = python(*way, cwd=here, root=local, stdin=FLOW + HERE)
    assert said == "completed [7, 12] ['__main__.add', '__main__.multiply']"


def test_the_cells_of_a_notebook_run_in_it_and_are_refused_for_workers(here: Path, local: Path) -> None:
    said = python("-", cwd=here, root=local, stdin=FLOW + CELLS)
    ran, refused = said.splitlines()
    assert ran == "completed [7, 12] ['__main__.add', '__main__.multiply']"
    assert refused.endswith("Or run the workflow in this process: job_test(workflow, …).")
    assert asyncio.run(count_jobs()) == 1


INTERRUPTED = """
import time
from aaiclick.orchestration import job, job_test, task

@task
def sleeps():
    print("began", flush=True)
    time.sleep(3600)

@job
def long():
    sleeps()

job_test(long)
"""


def test_an_interrupt_ends_the_script_at_once_and_cancels_its_job(here: Path, local: Path) -> None:
    """At once: not when the body on its thread, which cannot be stopped, comes to its end."""
    (here / "flow.py").write_text(INTERRUPTED)
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    with warm.Popen(
        [sys.executable, "flow.py"], cwd=here, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as script:
        assert script.stdout is not None
        assert script.stdout.readline() == "began\n"
        script.send_signal(signal.SIGINT)
        _, said = script.communicate(timeout=60)
    assert said.strip().endswith("KeyboardInterrupt")
    (made,) = asyncio.run(list_jobs())
    assert made.status == "cancelled"


# ---------------------------------------------------------------- a running loop, as in a notebook


async def test_in_a_running_loop_the_call_says_what_to_await_and_that_works(local: Path) -> None:
    with pytest.raises(RunningLoop) as refused:
        flows.pipeline(x=3, y=4).result  # noqa: B018 (asking is what is refused)
    advice = re.search(r"Write instead: \(await (.+)\)\.result$", str(refused.value))
    assert advice is not None
    assert await count_jobs() == 0
    made = await eval(advice[1].replace("…", "x=3, y=4"), vars(flows))  # noqa: S307 (the advice is ours)

    with pytest.raises(RunningLoop) as refused:
        job_test(made)
    advice = re.search(r"Write instead: await (.+)$", str(refused.value))
    assert advice is not None
    finished = await eval(advice[1].replace("…", "made"), {"made": made, "ajob_test": ajob_test})  # noqa: S307 (the advice is ours)
    assert finished.result == [7, 12]


def test_a_script_with_a_loop_of_its_own(here: Path, local: Path) -> None:
    main = """
import asyncio
from aaiclick.orchestration import ajob_test

async def main():
    finished = await ajob_test(await pipeline.submit(x=3, y=4))
    print(finished.status, finished.result, [t.status for t in finished.tasks])

asyncio.run(main())
"""
    (here / "flow.py").write_text(FLOW + main)
    assert python("flow.py", cwd=here, root=local).startswith("completed [7, 12]")


# ---------------------------------------------------------------- threads and forks


def run_on_threads(count: int) -> list[object]:
    results: list[object] = []
    threads = [
        threading.Thread(target=lambda: results.append(job_test(flows.pipeline(x=3, y=4)).result)) for _ in range(count)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_threads_without_a_loop_work(local: Path) -> None:
    assert run_on_threads(1) == [[7, 12]]
    assert run_on_threads(4) == [[7, 12]] * 4


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_several_threads_may_be_the_first_on_a_new_root(local: Path) -> None:
    assert run_on_threads(8) == [[7, 12]] * 8


async def test_a_thread_beside_a_running_loop_works(local: Path) -> None:
    finished = await asyncio.to_thread(job_test, flows.pipeline, 3, 4)
    assert finished.result == [7, 12]


FORK = """
import asyncio, os, sys
from aaiclick.orchestration import Context, count_jobs, job_test, list_jobs

def in_a_child(work):
    pid = os.fork()
    if pid == 0:
        try:
            work()
        except BaseException as error:
            print(repr(error)); os._exit(1)
        sys.stdout.flush(); os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0

def run():
    print(job_test(pipeline, x=3, y=4).result, flush=True)

async def main():
    async with Context():
        await count_jobs()
        in_a_child(run)  # inside a running loop and an open context
        return await list_jobs()

if __name__ == "__main__":
    run()
    in_a_child(run)
    made = asyncio.run(main())
    print(len(made), len({one.id for one in made}))
"""


def test_a_forked_child_works_and_its_parent_too(here: Path, local: Path) -> None:
    (here / "flow.py").write_text(FLOW + FORK)
    assert python("flow.py", cwd=here, root=local) == "[7, 12]\n[7, 12]\n[7, 12]\n3 3"


# ---------------------------------------------------------------- after the context closed


async def test_a_context_that_is_closed_still_applies(local: Path) -> None:
    made = await create_job("later", tasks=[])
    async with Context(made.id) as context:
        assert get_current_context() is context
        first = await context.apply(Task("tests.orchestration.sample_flows.plain"))
    with pytest.raises(NoContext, match="get_current_context needs a context"):
        get_current_context()
    second = await context.apply(Task("tests.orchestration.sample_flows.plain"))
    assert [task and task.job_id for task in (await get_task(first.id), await get_task(second.id))] == [made.id] * 2


CLOSED = """
import asyncio
from aaiclick.orchestration import Context, count_jobs

async def later():
    await closed.wait()
    return await count_jobs()

async def main():
    global closed
    closed = asyncio.Event()
    async with Context():
        await count_jobs()
        left_over = asyncio.create_task(later())
    closed.set()
    print(await left_over)

asyncio.run(main())
"""


def test_a_task_that_outlives_its_context_works_and_the_process_ends(here: Path, local: Path) -> None:
    assert python("-c", CLOSED, cwd=here, root=local) == "0"
