"""One conformance suite for whoever runs bodies: in the worker, in children, or over a transport of the tests' own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from aaiclick.config import reset_settings
from aaiclick.orchestration.execution.executors.contract import Executor
from aaiclick.orchestration.execution.executors.inline import InlineExecutor
from aaiclick.orchestration.execution.executors.process import ProcessExecutor
from aaiclick.orchestration.models import Claim, Done, Report
from aaiclick.orchestration.rules.resources import Granted
from aaiclick.orchestration.rules.values.encoding import encode_kwargs, encode_value
from tests.orchestration import growing_flows as flows
from tests.orchestration.sample_flows import RAISES
from tests.support import bodies
from tests.support.bodies import claim_of, failure_in, log_of, result_in, until
from tests.support.streamed import StreamExecutor

IMPLEMENTATIONS: dict[str, Callable[[], Executor]] = {
    "inline": InlineExecutor,
    "process": lambda: ProcessExecutor(2),
    "streams": StreamExecutor,
}


@pytest.fixture(params=sorted(IMPLEMENTATIONS))
async def executor(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Executor]:
    monkeypatch.setenv("AAICLICK_LOG_DIR", str(tmp_path / "logs"))
    monkeypatch.setenv("AAICLICK_CANCEL_GRACE_SECONDS", "60")
    reset_settings()
    executor = IMPLEMENTATIONS[request.param]()
    await executor.start()
    yield executor
    await executor.close()


async def run(executor: Executor, claim: Claim) -> Report:
    seen: list[str | None] = []
    report = await executor.run(claim, seen.append)
    assert (report.task_id, report.epoch) == (claim.task_id, claim.epoch)
    assert len(seen) == 1
    assert seen[0] in (None, report.log_path)
    assert report.log_path is None or log_of(report) is not None
    return report


# ---------------------------------------------------------------- bodies that work


VALUES = [None, 1, "größe 😀", [1.5, (2, b"\x00")], {"a": {1, 2}, 3: None}]


@pytest.mark.parametrize("body", [bodies.echo, bodies.echo_async])
async def test_a_body_gives_its_result(executor: Executor, body: Callable[..., object]) -> None:
    assert result_in(await run(executor, claim_of(body, value=VALUES))) == VALUES


async def test_a_body_that_computes_gives_its_result(executor: Executor) -> None:
    assert result_in(await run(executor, claim_of(bodies.count, up_to=1_000_000))) == 499999500000


async def test_bodies_run_at_the_same_time(executor: Executor) -> None:
    claims = [claim_of(bodies.echo_async, value=number) for number in range(40)]
    reports = await asyncio.gather(*(run(executor, claim) for claim in claims))
    assert [result_in(report) for report in reports] == list(range(40))


async def test_results_of_other_tasks_take_their_places(executor: Executor) -> None:
    claim = claim_of(bodies.echo)
    marks = {1: ("task", 501), 2: ("task", 502), 3: ("group", 601)}

    class Stands:
        def __init__(self, number: int) -> None:
            self.number = number

    def mark(thing: object) -> tuple[str, object] | None:
        return marks[thing.number] if isinstance(thing, Stands) else None

    value = [Stands(1), Stands(2), Stands(3)]
    claim.kwargs_json = encode_kwargs({"value": value}, bytes_max=10**6, mark=mark)
    others: dict[int, str | None] = {number: encode_value("x" * 1000, bytes_max=10**6) for number in range(700, 800)}
    results = {501: "one", 502: None, 503: [3]}
    claim.inputs = others | {key: encode_value(value, bytes_max=10**6) for key, value in results.items()}
    claim.members = {601: [503, 501], 602: list(range(700, 800))}
    assert result_in(await run(executor, claim)) == ["one", None, [[3], "one"]]


async def test_arguments_larger_than_any_pipe_arrive(executor: Executor) -> None:
    text = "äx" * 1_000_000
    report = await run(executor, claim_of(bodies.length, text=text))
    assert result_in(report) == 2_000_000


async def test_a_body_knows_its_run(executor: Executor) -> None:
    claim = claim_of(bodies.who_am_i)
    claim.generation = 2
    key = f"{claim.task_id}-2"
    assert result_in(await run(executor, claim)) == [claim.task_id, 9, bodies.EPOCH, 1, "who_am_i", key, False]


# ---------------------------------------------------------------- bodies that do not


@pytest.mark.parametrize("body", [bodies.raises, bodies.raises_async])
async def test_whatever_a_body_raises_becomes_a_failure(executor: Executor, body: Callable[..., object]) -> None:
    for kind, make in RAISES.items():
        failure = failure_in(await run(executor, claim_of(body, kind=kind)))
        error = type(make())
        assert failure.error_types[0] == f"{error.__module__}.{error.__qualname__}"
        assert failure.error.startswith(error.__qualname__)
        assert "hunter2" not in failure.error + (failure.traceback or "")
        assert len(failure.error) < 20_000
        assert not failure.permanent
        assert not failure.crashed
    assert result_in(await run(executor, claim_of(bodies.echo, value=1))) == 1


@pytest.mark.parametrize("body", [bodies.interrupts, bodies.interrupts_async])
async def test_an_interrupt_of_a_bodys_own_ends_only_that_body(executor: Executor, body: Callable[..., object]) -> None:
    assert failure_in(await run(executor, claim_of(body))).error == "KeyboardInterrupt"
    assert result_in(await run(executor, claim_of(bodies.echo, value=1))) == 1


async def test_a_result_that_cannot_travel_fails_for_good(executor: Executor) -> None:
    for kind in ["object", "generator", "itself", "lock", "over 100 MB", "result within data"]:
        failure = failure_in(await run(executor, claim_of(bodies.returns, kind=kind)))
        assert failure.permanent
        assert failure.error.startswith(("ValueNotPortable: result", "ValueTooLarge: result")), kind


async def test_what_a_body_makes_is_in_its_report(executor: Executor) -> None:
    """Sync and async; the ids are this installation's own, and none is made twice."""
    seen: set[int] = set()
    for body in (flows.several.function, flows.grouped.function, flows.one.function):
        report = await run(executor, claim_of(body, **({"x": 2} if body is flows.one.function else {"n": 3})))
        assert isinstance(report, Done), report
        assert report.children is not None
        made = {new.id for new in report.children.tasks} | {new.id for new in report.children.groups}
        assert {node for _, node in report.children.returned} <= made
        assert not made & seen
        seen |= made
    assert len(seen) == 3 + 4 + 1


@pytest.mark.parametrize(
    ("entrypoint", "said"),
    [
        ("no_such_module_at_all.f", "there is no module"),
        ("tests.support.bodies.no_such", "has no no_such"),
        ("tests.support.bodies.echo", "missing: 'value'"),
        ("os.system", "built into Python"),
    ],
)
async def test_an_entrypoint_that_cannot_be_called_fails_for_good(
    executor: Executor, entrypoint: str, said: str
) -> None:
    failure = failure_in(await run(executor, claim_of(entrypoint)))
    assert failure.permanent
    assert said in failure.error


# ---------------------------------------------------------------- logs


async def test_everything_that_a_body_says_is_in_its_log(executor: Executor) -> None:
    report = await run(executor, claim_of(bodies.says_in_every_way))
    said = log_of(report)
    for line in (
        "print\n",
        "write\n",
        "bytes \\xff\n",
        "to stderr\n",
        "WARNING mine: log 1\n",
        "LookupError: inside",
    ):
        assert said.count(line) == 1, line
    assert said.endswith("no newline")


async def test_logs_of_runs_at_the_same_time_do_not_mix(executor: Executor) -> None:
    claims = [
        claim_of(bodies.says if number % 2 else bodies.says_async, text=f"<{number}>", times=20) for number in range(8)
    ]
    reports = await asyncio.gather(*(run(executor, claim) for claim in claims))
    assert [log_of(report) for report in reports] == [f"<{number}>\n" * 20 for number in range(8)]


async def test_the_newest_attempt_has_a_name_of_its_own(executor: Executor) -> None:
    claim = claim_of(bodies.says, text="first")
    first = await run(executor, claim)
    claim.epoch += 1
    claim.kwargs_json = encode_kwargs({"text": "second"}, bytes_max=1000)
    second = await run(executor, claim)
    assert (log_of(first), log_of(second)) == ("first\n", "second\n")
    assert second.log_path is not None
    directory = Path(second.log_path).parent
    assert (directory / f"{claim.task_id}.log").read_text() == "second\n"


async def test_a_log_can_be_read_while_the_body_runs(executor: Executor, tmp_path: Path) -> None:
    claim = claim_of(bodies.says_and_waits, text="hello", path=str(tmp_path / "x"))
    task = asyncio.create_task(run(executor, claim))
    path = tmp_path / "logs" / f"{claim.task_id}.log"
    await until(lambda: path.exists() and path.read_text() == "hello\n")
    task.cancel()
    await asyncio.wait([task])


async def test_a_log_directory_that_cannot_be_written_stops_nothing(
    executor: Executor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("AAICLICK_LOG_DIR", str(tmp_path / "file"))
    reset_settings()
    report = await run(executor, claim_of(bodies.says, text="x"))
    assert report.log_path is None
    assert result_in(report) is None


# ---------------------------------------------------------------- the end of a run


@pytest.mark.parametrize("body", [bodies.waits, bodies.asks])
async def test_a_body_that_can_be_asked_ends_when_its_run_is_cancelled(
    executor: Executor, tmp_path: Path, body: Callable[..., object]
) -> None:
    task = asyncio.create_task(executor.run(claim_of(body, path=str(tmp_path / "x")), lambda path: None))
    await until((tmp_path / "x.began").exists)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until((tmp_path / "x.stopped").exists)
    assert result_in(await run(executor, claim_of(bodies.echo, value=1))) == 1


@pytest.mark.parametrize("body", [bodies.sleeps, bodies.sleeps_async])
async def test_a_body_that_is_too_slow_fails(
    executor: Executor, body: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AAICLICK_CANCEL_GRACE_SECONDS", "0.3")
    reset_settings()
    failure = failure_in(await run(executor, claim_of(body, timeout_s=0.2, seconds=3600.0)))
    assert failure.error == "TaskTimeout: The task ran longer than its limit of 0.2 s."
    assert failure.error_types[0] == "aaiclick.errors.TaskTimeout"
    assert "builtins.TimeoutError" in failure.error_types
    assert not failure.permanent
    assert not failure.crashed


async def test_the_default_timeout_comes_from_the_settings(executor: Executor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKER_TASK_TIMEOUT", "1")
    reset_settings()
    failure = failure_in(await run(executor, claim_of(bodies.sleeps_async, seconds=3600.0)))
    assert "limit of 1.0 s" in failure.error


async def test_a_run_that_is_cancelled_before_it_begins_never_begins(executor: Executor, tmp_path: Path) -> None:
    task = asyncio.create_task(executor.run(claim_of(bodies.touch, path=str(tmp_path / "x")), lambda path: None))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert result_in(await run(executor, claim_of(bodies.echo, value=1))) == 1
    assert not (tmp_path / "x").exists()


async def test_after_kill_a_body_is_stopped_without_being_asked(executor: Executor, tmp_path: Path) -> None:
    executor.kill()
    task = asyncio.create_task(executor.run(claim_of(bodies.waits, path=str(tmp_path / "x")), lambda path: None))
    await until((tmp_path / "x.began").exists)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_the_log_of_a_run_that_failed_ends_with_its_traceback(executor: Executor) -> None:
    failure = failure_in(await run(executor, claim_of(bodies.returns, kind="no such kind")))
    said = log_of(failure)
    assert failure.traceback
    assert said is not None
    assert said.endswith(failure.traceback)


# ---------------------------------------------------------------- resources


async def test_a_body_is_told_which_gpus_it_was_granted(executor: Executor) -> None:
    """In a process of its own also by its environment, and no other body runs there before or after."""
    gpus = [Granted(1, "gpu", 1, 5_000, "1", 5), Granted(1, "gpu", 3, 5_000, "MIG-3", 5), Granted(0, "db", 0, 500)]
    before = result_in(await run(executor, claim_of(bodies.granted)))
    granted = replace(claim_of(bodies.granted), grants=gpus)
    first, second = [result_in(await run(executor, granted)) for _ in range(2)]
    after = result_in(await run(executor, claim_of(bodies.granted)))
    is_apart = isinstance(executor, ProcessExecutor)
    for told, devices, _ in (first, second):
        assert told == {"gpu": [1, 3], "gpu_memory_mb": 5, "db": 0.5}
        assert devices == ("1,MIG-3" if is_apart else None)
    assert [each[:2] for each in (before, after)] == [[{}, None]] * 2
    if is_apart:
        assert first[2] not in (before[2], second[2])
        assert second[2] not in (before[2], after[2])
