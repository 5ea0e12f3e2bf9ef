"""What only a process of its own makes possible: the body dies, or must, and nothing else does."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aaiclick.orchestration.execution.executors.process import ProcessExecutor
from tests.support import bodies, hostile
from tests.support.bodies import claim_of, failure_in, is_alive, log_of, pids_in, result_in, until
from tests.support.executors import Settings, child_of, run

# ---------------------------------------------------------------- warm children


async def test_one_child_runs_many_bodies(executor: ProcessExecutor) -> None:
    assert len({await child_of(executor) for _ in range(20)}) == 1


async def test_a_child_is_replaced_after_so_many_tasks(change_settings: Settings) -> None:
    change_settings(CHILD_TASKS_MAX=3)
    executor = ProcessExecutor(1)
    await executor.start()
    pids = [await child_of(executor) for _ in range(7)]
    await executor.close()
    assert [pids.count(pid) for pid in dict.fromkeys(pids)] == [3, 3, 1]


@pytest.mark.parametrize(
    ("body", "kwargs"),
    [
        (hostile.leaks_descriptors, {"count": 100}),
        (hostile.takes_memory, {"megabytes": 30}),
        (hostile.lowers_its_limits, {}),
    ],
)
async def test_a_child_that_has_grown_is_replaced(
    change_settings: Settings, body: Callable[..., object], kwargs: dict[str, Any]
) -> None:
    change_settings(CHILD_GROWTH_MB=20)
    executor = ProcessExecutor(1)
    await executor.start()
    pid = result_in(await run(executor, claim_of(body, **kwargs)))
    assert await child_of(executor) != pid
    await until(lambda: not is_alive(pid))
    await executor.close()


async def test_what_a_body_changes_around_it_is_put_back(executor: ProcessExecutor) -> None:
    before = result_in(await run(executor, claim_of(hostile.surroundings)))
    assert result_in(await run(executor, claim_of(hostile.changes_surroundings))) is None
    assert result_in(await run(executor, claim_of(hostile.surroundings))) == before


@pytest.mark.parametrize("kind", ["descriptors", "streams", "none", "another file"])
async def test_a_body_that_closes_its_streams_hurts_no_other(executor: ProcessExecutor, kind: str) -> None:
    first = await run(executor, claim_of(hostile.closes_stdio, kind=kind))
    assert result_in(first) == kind
    assert log_of(first) == "before\n"
    second = await run(executor, claim_of(bodies.says_in_every_way))
    assert result_in(second) is None
    assert log_of(second).startswith("print\nwrite\n")
    assert result_in(await run(executor, claim_of(hostile.reads_stdin))) == ""


async def test_bodies_of_an_application_are_found_in_its_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "only_there.py").write_text("import sys\ndef where(): return sys.path[-1]\n")
    given = ProcessExecutor(1, app_dir=str(tmp_path / "app"))
    await given.start()
    assert result_in(await run(given, claim_of("only_there.where"))) == str(tmp_path / "app")
    await given.close()
    assert "only_there" not in sys.modules


@pytest.mark.parametrize("text", ["import sys; sys.exit(3)", "raise ValueError('broken')", "import os; os._exit(4)"])
async def test_a_module_that_breaks_when_it_is_imported_fails_only_its_task(tmp_path: Path, text: str) -> None:
    (tmp_path / "breaks.py").write_text(text)
    executor = ProcessExecutor(1, app_dir=str(tmp_path))
    await executor.start()
    failure = failure_in(await run(executor, claim_of("breaks.f")))
    assert failure.permanent != failure.crashed
    assert result_in(await run(executor, claim_of("json.dumps", obj=1))) == "1"
    await executor.close()


async def test_a_module_that_hangs_when_it_is_imported_is_killed(tmp_path: Path) -> None:
    (tmp_path / "hangs.py").write_text("while True:\n  try:\n    while True: pass\n  except BaseException: pass\n")
    executor = ProcessExecutor(1, app_dir=str(tmp_path))
    await executor.start()
    assert failure_in(await run(executor, claim_of("hangs.f", timeout_s=0.2))).error.startswith("TaskTimeout")
    assert result_in(await run(executor, claim_of("json.dumps", obj=1))) == "1"
    await executor.close()


# ---------------------------------------------------------------- bodies that die


@pytest.mark.parametrize(
    ("body", "kwargs", "cause"),
    [
        (hostile.exits, {"code": 3}, "exit code 3."),
        (hostile.exits, {"code": 0}, "exit code 0."),
        (hostile.reads_nowhere, {}, "killed by signal 11 (SIGSEGV)."),
        (hostile.signals_itself, {"number": 6}, "killed by signal 6 (SIGABRT)."),
        (
            hostile.signals_itself,
            {"number": 9},
            "killed by signal 9 (SIGKILL). The machine may have",
        ),
        (hostile.closes_everything, {}, "it closed its connection"),
        (hostile.writes_to_the_line, {}, "it closed its connection"),
    ],
)
async def test_a_child_that_dies_fails_its_run_and_names_the_cause(
    executor: ProcessExecutor, body: Callable[..., object], kwargs: dict[str, Any], cause: str
) -> None:
    failure = failure_in(await run(executor, claim_of(body, **kwargs)))
    assert failure.crashed
    assert not failure.permanent
    assert failure.error.startswith(f"TaskCrashed: The process that ran the task died: {cause}")
    assert failure.error_types[0] == "aaiclick.errors.TaskCrashed"
    assert log_of(failure).splitlines()[-1].startswith(f"[aaiclick] The process that ran the task died: {cause}")
    if body in (hostile.exits, hostile.signals_itself):
        assert log_of(failure).startswith("last words\n")
    assert result_in(await run(executor, claim_of(bodies.echo, value=1))) == 1


async def test_a_segmentation_fault_leaves_its_place_in_the_log(executor: ProcessExecutor) -> None:
    assert "in reads_nowhere" in log_of(await run(executor, claim_of(hostile.reads_nowhere)))


async def test_a_body_without_memory_fails(executor: ProcessExecutor) -> None:
    failure = failure_in(await run(executor, claim_of(hostile.takes_all_memory)))
    assert failure.error.startswith("MemoryError")
    assert not failure.crashed
    assert result_in(await run(executor, claim_of(bodies.echo, value=1))) == 1


async def test_only_the_run_of_the_child_that_dies_fails() -> None:
    executor = ProcessExecutor(3)
    await executor.start()
    claims = [claim_of(hostile.exits, code=1) if n % 3 == 0 else claim_of(bodies.echo, value=n) for n in range(30)]
    reports = await asyncio.gather(*(run(executor, claim) for claim in claims))
    assert [result_in(report) for n, report in enumerate(reports) if n % 3] == [n for n in range(30) if n % 3]
    assert all(failure_in(report).crashed for report in reports[::3])
    await executor.close()


async def test_a_body_that_forks_reports_once(executor: ProcessExecutor) -> None:
    pids = [result_in(await run(executor, claim_of(hostile.forks_and_returns))) for _ in range(5)]
    assert result_in(await run(executor, claim_of(bodies.echo, value=1))) == 1
    assert all(type(pid) is int for pid in pids)


@pytest.mark.parametrize("method", ["fork", "spawn"])
async def test_a_body_may_use_processes_of_its_own(executor: ProcessExecutor, method: str) -> None:
    assert result_in(await run(executor, claim_of(hostile.uses_processes, method=method))) == [1, 4, 9]
    assert result_in(await run(executor, claim_of(bodies.echo, value=1))) == 1


async def test_a_body_may_end_the_processes_that_it_forked(executor: ProcessExecutor) -> None:
    assert result_in(await run(executor, claim_of(hostile.ends_a_process_of_its_own))) == -signal.SIGTERM


SILENT_WORKER = """
import asyncio, sys
from aaiclick.orchestration.execution.executors.process import ProcessExecutor
from tests.support import bodies

async def main():
    executor = ProcessExecutor(1)
    await executor.start()
    report = await executor.run(bodies.claim_of(bodies.says_in_every_way), lambda path: None)
    await executor.close()
    bodies.touch(sys.argv[1], bodies.log_of(report))

asyncio.run(main())
"""


async def test_a_worker_whose_streams_are_closed_runs_bodies(tmp_path: Path) -> None:
    command = ["sh", "-c", 'exec "$0" -c "$1" "$2" <&- >&- 2>&-', sys.executable, SILENT_WORKER, str(tmp_path / "log")]
    worker = await asyncio.create_subprocess_exec(*command, env=os.environ | {"PYTHONPATH": os.getcwd()})
    assert await worker.wait() == 0
    assert (tmp_path / "log").read_text().startswith("print\nwrite\n")


async def test_an_idle_child_that_dies_is_replaced(executor: ProcessExecutor) -> None:
    pid = await child_of(executor)
    os.kill(pid, signal.SIGKILL)
    await until(lambda: not is_alive(pid))
    await until(lambda: not executor._idle[0].alive)
    assert await child_of(executor) != pid


# ---------------------------------------------------------------- what bodies leave behind


async def test_processes_that_a_body_leaves_are_killed(executor: ProcessExecutor, tmp_path: Path) -> None:
    report = await run(executor, claim_of(hostile.leaves_grandchildren, path=str(tmp_path / "pids")))
    assert result_in(report) is None
    pids = pids_in(tmp_path / "pids")
    assert len(pids) == 4
    await until(lambda: not any(is_alive(pid) for pid in pids))
    assert await child_of(executor) not in pids


async def test_nobody_waits_for_a_process_that_goes_on_writing(executor: ProcessExecutor) -> None:
    report = await run(executor, claim_of(hostile.leaves_a_writer))
    pid = result_in(report)
    assert log_of(report).startswith("before\n")
    await until(lambda: not is_alive(pid))


# ---------------------------------------------------------------- output


async def test_output_below_python_is_in_the_log(executor: ProcessExecutor) -> None:
    said = log_of(await run(executor, claim_of(hostile.speaks_below)))
    assert sorted(said.splitlines()) == ["by C", "by a process", "by descriptor"]


async def test_binary_output_is_kept_as_it_is(executor: ProcessExecutor) -> None:
    report = await run(executor, claim_of(hostile.binary))
    assert report.log_path is not None
    assert await asyncio.to_thread(Path(report.log_path).read_bytes) == bytes(range(256))


async def test_a_flood_is_capped_and_holds_up_nobody(executor: ProcessExecutor, change_settings: Settings) -> None:
    change_settings(LOG_BYTES_MAX=1_000_000)
    flood = asyncio.create_task(run(executor, claim_of(hostile.output, megabytes=50)))
    turns = 0
    while not flood.done():
        await asyncio.sleep(0.001)
        turns += 1
    said = log_of(await flood)
    assert turns > 10
    assert 900_000 < len(said) < 1_001_000
    assert said.endswith("x\nthe end\n")
    assert said.count("[aaiclick]") == 2
