"""The owner of the engine ends, is killed and is stopped under those who write and read: every batch is there, once."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from aaiclick.backend import get_ch_url
from aaiclick.config import reset_settings
from aaiclick.data import Context, data_context
from aaiclick.data.clients import opening
from aaiclick.data.embedded.directory_lock import find_gateway
from tests.support import warm

LONG = "TEST_LONG" in os.environ
pytestmark = pytest.mark.timeout(600 if LONG else 120)
PROCESSES = 8 if LONG else 3
CONTEXTS = 8 if LONG else 1
WRITERS = 8
READERS = 4 if LONG else 1
ROUNDS = 10 if LONG else 1
BATCHES_BEFORE_AN_END = 8
HALF = 3
ROWS = 2 * HALF
COLUMNS = {"writer": "Int64", "batch": "Int64", "row": "Int64"}

WRITES_A_WHILE = """
import asyncio, sys
from tests.stories.test_engine_changes_hands import write
from aaiclick.data import data_context

async def main(writer, contexts):
    for batch in range(contexts):
        async with data_context() as context:
            await write(context, writer, batch)

asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))
"""


async def write(context: Context, writer: int, batch: int) -> None:
    """A batch into the table of all, by values and by what ClickHouse computes from a table of its own."""
    everything = await context.open_object("batches")
    half = {"writer": [writer] * HALF, "batch": [batch] * HALF, "row": list(range(HALF))}
    await everything.insert(half)
    own = await context.create_object_from_value(half)
    more = own.with_columns(row=own["row"] + HALF)
    assert await everything.insert(more) == HALF


async def stored(context: Context) -> dict[tuple[int, int], list[int]]:
    everything = await context.open_object("batches")
    found = await everything.data()
    batches: dict[tuple[int, int], list[int]] = {}
    for writer, batch, row in zip(found["writer"], found["batch"], found["row"], strict=True):
        batches.setdefault((writer, batch), []).append(row)
    return {key: sorted(rows) for key, rows in batches.items()}


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AAICLICK_LOCAL_ROOT", str(tmp_path / "root"))
    monkeypatch.delenv("AAICLICK_CH_URL", raising=False)
    reset_settings()
    return tmp_path / "root"


async def test_writers_that_come_and_go_hand_the_engine_over_without_a_failed_call() -> None:
    async with data_context() as context:
        await context.create_object(COLUMNS, name="batches")

    def come_and_go(writer: int) -> str:
        command = [sys.executable, "-c", WRITES_A_WHILE, str(writer), str(CONTEXTS)]
        return warm.run(command, stderr=subprocess.PIPE, text=True, check=False).stderr

    said = await asyncio.gather(*(asyncio.to_thread(come_and_go, writer) for writer in range(PROCESSES)))
    assert said == [""] * PROCESSES
    async with data_context() as context:
        found = await stored(context)
    assert found == {(w, b): list(range(ROWS)) for w in range(PROCESSES) for b in range(CONTEXTS)}


class Owner:
    """The process that serves the engine: another one starts when it has ended and someone asks."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None

    def ask(self) -> None:
        if self.process is None or self.process.poll() is not None:
            command = [sys.executable, "-m", "aaiclick", "data", "serve"]
            self.process = warm.Popen(command, stderr=subprocess.DEVNULL)

    async def end(self, how: signal.Signals) -> None:
        assert self.process is not None
        if how is signal.SIGSTOP:
            self.process.send_signal(how)
            await asyncio.sleep(0.2)  # nobody can tell that it is stopped: that is what is tried
            self.process.send_signal(signal.SIGCONT)
        else:
            self.process.send_signal(how)
            await asyncio.to_thread(self.process.wait)


async def test_the_owner_ends_is_killed_and_stopped_under_writers_and_readers(monkeypatch: pytest.MonkeyPatch) -> None:
    owner, acknowledged, last = Owner(), set[tuple[int, int]](), asyncio.Event()
    monkeypatch.setattr(opening, "_ask_for_owner", owner.ask)

    async def writing(context: Context, writer: int) -> None:
        batch = 0
        while not last.is_set():
            await write(context, writer, batch)
            acknowledged.add((writer, batch))
            batch += 1

    async def reading(context: Context) -> None:
        while not last.is_set():
            known = set(acknowledged)
            assert known <= set(await stored(context))

    try:
        async with data_context() as context:
            await context.create_object(COLUMNS, name="batches")
            async with asyncio.TaskGroup() as group:
                for writer in range(WRITERS):
                    group.create_task(writing(context, writer))
                for _ in range(READERS):
                    group.create_task(reading(context))
                for how in [signal.SIGTERM, signal.SIGSTOP, signal.SIGKILL] * ROUNDS:
                    enough = len(acknowledged) + BATCHES_BEFORE_AN_END
                    while len(acknowledged) < enough:  # noqa: ASYNC110  # a set tells nobody
                        await asyncio.sleep(0.001)
                    await owner.end(how)
                last.set()
            found = await stored(context)
            assert set(found) == acknowledged
            assert all(rows == list(range(ROWS)) for rows in found.values())
    finally:
        monkeypatch.setattr(opening, "_ask_for_owner", None)
        await asyncio.to_thread(opening._keep_open, 0)  # the client stayed open for whoever asks next
        if owner.process is not None:
            owner.process.kill()
            owner.process.wait()
    assert find_gateway(Path(get_ch_url().removeprefix("chdb://")), 0) is None
