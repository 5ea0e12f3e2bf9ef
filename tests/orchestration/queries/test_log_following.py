"""The ends of logs, and what is added to them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from aaiclick.backend import get_db_url, get_logs_dir
from aaiclick.errors import NotFound
from aaiclick.orchestration import cancel_job, clear_task, create_job, create_task
from aaiclick.orchestration.execution.logs import log_reading
from aaiclick.orchestration.log_stores.directory import LocalDirectory
from aaiclick.orchestration.models import Job, Task
from aaiclick.orchestration.queries import log_following
from aaiclick.orchestration.queries.log_following import (
    MISSING,
    LogPosition,
    follow_job_logs,
    follow_log,
    read_job_logs,
    read_tail,
    read_whole,
)
from aaiclick.orchestration.rules.states import TaskStatus
from tests.migrations.pictures import run
from tests.support.front_door import local

__all__ = ["local"]

FAIL = "tests.server.outside_flows.fail"


@pytest.fixture(autouse=True)
def place(local: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(log_following, "LOOK_EVERY_S", 0.001)
    return Path(get_logs_dir())


async def submit(*names: str) -> tuple[Job, list[Task]]:
    tasks = [create_task(FAIL, name=name) for name in names]
    return await create_job("x", tasks=tasks), tasks


async def heard(pieces: AsyncIterator[Any]) -> Any:
    """The next piece with something in it; None at the end."""
    while (piece := await anext(pieces, None)) == b"":
        pass
    return piece


async def test_the_last_lines_and_where_to_go_on(place: Path) -> None:
    (place / "5.log").write_bytes(b"a\nb\nc")
    file = (place / "5.log").stat().st_ino
    assert await read_tail(5, lines=2) == (b"b\nc", LogPosition(5, file))
    assert await read_tail(5, lines=9) == (b"a\nb\nc", LogPosition(5, file))
    assert await read_tail(5, lines=0) == (b"", LogPosition(5, file))
    assert await read_tail(6, lines=2) == (b"", LogPosition(0))


async def test_the_tail_of_a_long_log(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for room in (log_following, log_reading):
        monkeypatch.setattr(room, "PART_BYTES_MAX", 10)
    (place / "5.log").write_bytes(b"0123456789\n" * 3)
    data, where = await read_tail(5, lines=5)
    assert (data, where.offset) == (b"123456789\n", 33)
    assert b"".join([piece async for piece in read_whole(5)]) == b"0123456789\n" * 3


async def test_a_log_is_followed_from_a_place_to_the_end(place: Path) -> None:
    job, (task,) = await submit("a")
    path = place / f"{task.id}.log"
    path.write_bytes(b"one\ntwo\n")
    _, start = await read_tail(task.id, lines=1)
    pieces = follow_log(task.id, start=start)
    with path.open("ab") as log:
        log.write(b"three\n")
    assert await heard(pieces) == b"three\n"
    await cancel_job(job.id)
    assert await heard(pieces) is None


async def test_of_an_attempt_that_is_over_nothing_more_comes(place: Path) -> None:
    _, (task,) = await submit("a")
    (place / f"{task.id}.7.log").write_bytes(b"old")
    assert [piece async for piece in follow_log(task.id, 7)] == [b"old"]


async def test_the_logs_of_a_job_in_order(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_following, "PAGE", 2)
    job, tasks = await submit("a", "b", "c", "d", "e")
    for task in tasks[::2]:
        (place / f"{task.id}.log").write_bytes(f"{task.name} 1\n{task.name} 2\n".encode())
    found = [(piece.task.name, piece.data) async for piece in read_job_logs(job.id, lines=1)]
    assert found == [("a", b"a 2\n"), ("b", b""), ("c", b"c 2\n"), ("d", b""), ("e", b"e 2\n")]
    assert [piece async for piece in read_job_logs(job.id, status=TaskStatus.FAILED)] == []
    with pytest.raises(NotFound):
        _ = [piece async for piece in read_job_logs(12345)]


async def test_the_logs_of_a_job_are_followed_to_its_end(place: Path) -> None:
    job, (first, second) = await submit("a", "b")
    (place / f"{first.id}.log").write_bytes(b"1\n2\n")
    pieces = follow_job_logs(job.id, lines=1)
    assert (await heard(pieces)).data == b"2\n"
    (place / f"{second.id}.log").write_bytes(b"3\n")
    piece = await heard(pieces)
    assert (piece.task.name, piece.data) == ("b", b"3\n")
    with (place / f"{first.id}.log").open("ab") as log:
        log.write(b"4\n")
    assert (await heard(pieces)).data == b"4\n"
    await cancel_job(job.id)
    assert await heard(pieces) is None
    with pytest.raises(NotFound):
        await anext(follow_job_logs(12345))


async def test_another_attempt_is_followed_from_its_beginning(place: Path) -> None:
    job, (task, _) = await submit("a", "b")
    path = place / f"{task.id}.log"
    path.write_bytes(b"first\n")
    pieces = follow_job_logs(job.id)
    assert (await heard(pieces)).data == b"first\n"
    (place / "new").write_bytes(b"again\n")
    (place / "new").replace(path)
    assert (await heard(pieces)).data == b"again\n"
    await pieces.aclose()  # type: ignore[attr-defined]


async def test_a_task_that_runs_again_is_looked_at_again(place: Path) -> None:
    job, (task, _) = await submit("a", "b")
    path = place / f"{task.id}.log"
    await run(get_db_url(), f"UPDATE tasks SET status = 'failed', completed_at = created_at WHERE id = {task.id}")
    await run(get_db_url(), f"DELETE FROM ready WHERE task_id = {task.id}")
    path.write_bytes(b"first\n")
    pieces = follow_job_logs(job.id)
    assert (await heard(pieces)).data == b"first\n"
    await clear_task(task.id)
    (place / "new").write_bytes(b"again\n")
    (place / "new").replace(path)
    assert (await heard(pieces)).data == b"again\n"
    await pieces.aclose()  # type: ignore[attr-defined]


# ---------------------------------------------------------------- logs that have not arrived


async def test_a_log_whose_rest_has_not_arrived_says_so(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its task has ended, and its worker is cut off: all readers are told, and none waits for ever."""
    monkeypatch.setattr(log_following, "LATE_S", 0.002)
    job, (task,) = await submit("a")
    store = LocalDirectory(place)
    store.write(task.id, 1, 0, b"one\n")
    assert [piece async for piece in read_whole(task.id)] == [b"one\n"]  # it may still be written
    await cancel_job(job.id)
    assert [piece async for piece in read_whole(task.id)] == [b"one\n", MISSING]
    assert [piece async for piece in read_whole(task.id, lines=1)] == [b"one\n", MISSING]
    assert [piece async for piece in follow_log(task.id) if piece] == [b"one\n", MISSING]
    assert [piece.data async for piece in follow_job_logs(job.id)] == [b"one\n", MISSING]
    store.write(task.id, 1, 4, b"two\n", last=True)
    assert [piece async for piece in follow_log(task.id) if piece] == [b"one\ntwo\n"]
    assert [piece.data async for piece in read_job_logs(job.id)] == [b"one\ntwo\n"]


async def test_a_follower_waits_for_what_comes_after_the_end(place: Path) -> None:
    job, (task,) = await submit("a")
    store = LocalDirectory(place)
    store.write(task.id, 1, 0, b"one\n")
    await cancel_job(job.id)
    pieces = follow_log(task.id)
    assert await heard(pieces) == b"one\n"
    assert await anext(pieces) == b""
    store.write(task.id, 1, 4, b"two\n", last=True)
    assert [await heard(pieces), await heard(pieces)] == [b"two\n", None]
