"""One part: started again when it ends, with pauses that grow, until it is stopped."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from aaiclick.cli.local import supervised_process as module
from aaiclick.cli.local.supervised_process import SupervisedProcess, cause_of, deaths_seen_by, our_command, pause_s

WAITS = "import time; print('up', flush=True); time.sleep(600)"
STUBBORN = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"
)
TWICE = """
import os, signal, time
asked = []
signal.signal(signal.SIGTERM, lambda *_: (asked.append(1), os.write(1, b"asked\\n")))  # print may be at work
print("up", flush=True)
while len(asked) < 2:
    time.sleep(0.01)
"""


class Told:
    """What a part told."""

    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []

    def __call__(self, event: str, /, **facts: object) -> None:
        self.events.append((event, facts))

    def named(self, event: str) -> list[dict[str, Any]]:
        return [facts for name, facts in self.events if name == event]

    async def until(self, event: str, count: int = 1, **wanted: object) -> None:
        async with asyncio.timeout(30):
            while sum(wanted.items() <= facts.items() for facts in self.named(event)) < count:  # noqa: ASYNC110
                await asyncio.sleep(0.01)


@pytest.fixture
def told() -> Told:
    return Told()


@asynccontextmanager
async def kept(script: str, told: Told) -> AsyncIterator[tuple[SupervisedProcess, asyncio.Task[int]]]:
    """A part that runs this script."""
    part = SupervisedProcess("part", [sys.executable, "-c", script], told)
    with deaths_seen_by(part):
        keeping = asyncio.create_task(part.keep())
        try:
            yield part, keeping
        finally:
            part.kill()
            await keeping


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAUSE_S_FIRST", 0.001)
    monkeypatch.setattr(module, "HURRY_S", 0.02)


def test_pauses_grow_up_to_a_limit() -> None:
    assert [pause_s(lives) for lives in (0, 1, 2, 3, 7, 8, 9999)] == [0, 0.5, 1, 2, 30, 30, 30]


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (0, "ended"),
        (70, "ended with exit code 70"),
        (-9, "was killed by SIGKILL"),
        (-63, "was killed by signal 63"),
    ],
)
def test_how_a_process_ended_in_words(code: int, words: str) -> None:
    assert cause_of(code) == words


def test_a_part_runs_this_command_with_this_interpreter() -> None:
    assert our_command("job") == [sys.executable, "-P", "-m", "aaiclick", "--part-of", str(os.getpid()), "job"]


async def test_what_is_killed_is_started_again(told: Told, hasty: None) -> None:
    async with kept(WAITS, told):
        for life in (1, 2, 3):
            await told.until("said", life)
            os.kill(told.named("started")[-1]["pid"], signal.SIGKILL)
            await told.until("died", life)
        await told.until("started", 4)
    assert {(facts["code"], facts["cause"]) for facts in told.named("died")} == {(-9, "was killed by SIGKILL")}
    assert [facts["again_in_s"] for facts in told.named("died")] == [0.001, 0.002, 0.004]
    assert len({facts["pid"] for facts in told.named("started")}) == 4


async def test_a_steady_life_makes_the_next_start_immediate(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STEADY_S", 0.0)
    async with kept("raise SystemExit(1)", told):
        await told.until("died", 2)
    assert [facts["again_in_s"] for facts in told.named("died")][:2] == [0, 0]


@pytest.mark.parametrize("code", [2, 6])
async def test_one_that_cannot_begin_is_given_up(told: Told, code: int) -> None:
    async with kept(f"import sys; print('aaiclick: no', file=sys.stderr); sys.exit({code})", told) as (part, keeping):
        assert await keeping == code
        assert part.over.is_set()
    assert [name for name, _ in told.events] == ["started", "said", "ended"]
    assert told.named("said") == [{"part": "part", "text": "no"}]


async def test_one_that_has_begun_once_is_not_given_up(told: Told, hasty: None, tmp_path: Path) -> None:
    script = f"import pathlib, sys; file = pathlib.Path({str(tmp_path / 'seen')!r}); seen = file.exists(); file.touch()"
    async with kept(f"{script}; sys.exit(2 if seen else 1)", told):
        await told.until("died", 3)
    assert [facts["code"] for facts in told.named("died")][:3] == [1, 2, 2]


async def test_one_that_the_system_cannot_start_is_tried_again(told: Told, hasty: None) -> None:
    part = SupervisedProcess("part", ["/no/such/program"], told)
    with deaths_seen_by(part):
        keeping = asyncio.create_task(part.keep())
        await told.until("died", 2)
        part.kill()
        assert await keeping == 0
    assert told.named("died")[0]["cause"] == "could not be started: No such file or directory"


async def test_stopped_it_ends_and_stays_so(told: Told) -> None:
    async with kept(WAITS, told) as (part, keeping):
        await told.until("said")
        await part.stop(30, asyncio.Event())
        assert await keeping == 0
    assert told.named("ended")[0]["code"] == -signal.SIGTERM
    assert told.named("died") == []


async def test_stopped_between_two_lives_it_is_not_started_again(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAUSE_S_FIRST", 600.0)
    async with kept("raise SystemExit(1)", told) as (part, keeping):
        await told.until("died")
        await part.stop(30, asyncio.Event())
        assert await keeping == 0
    assert len(told.named("started")) == 1


async def test_what_does_not_end_within_its_grace_is_killed(told: Told, hasty: None) -> None:
    async with kept(STUBBORN, told) as (part, keeping):
        await told.until("said")
        await part.stop(0.05, asyncio.Event())
        assert await keeping == 0
    assert told.named("ended")[0]["code"] == -signal.SIGKILL


async def test_in_a_hurry_it_is_asked_a_second_time(told: Told) -> None:
    hurry = asyncio.Event()
    async with kept(TWICE, told) as (part, keeping):
        await told.until("said", text="up")
        stopping = asyncio.create_task(part.stop(600, hurry))
        await told.until("said", text="asked")
        assert not stopping.done()
        hurry.set()
        await stopping
        assert await keeping == 0
    assert told.named("ended")[0]["code"] == 0


async def test_what_it_prints_is_passed_on_line_by_line(told: Told) -> None:
    script = r"""
import sys
print("one\ntwo \x1b[31m")
sys.stdout.flush()
sys.stdout.buffer.write(b"\xff" + b"x" * 100_000 + b"\n")
sys.stdout.flush()
print("last, without an end", end="")
sys.exit(2)
"""
    async with kept(script, told) as (_, keeping):
        await keeping
    first, second, *long, last = [facts["text"] for facts in told.named("said")]
    assert (first, second, last) == ("one", r"two \x1b[31m", "last, without an end")
    assert long[0].startswith(r"\xff")
    assert "".join(long) == r"\xff" + "x" * 100_000
    assert all(len(text) <= module.LINE_BYTES_MAX + module.CHUNK_BYTES for text in long)


async def test_its_children_may_outlive_it_with_its_output_open(told: Told) -> None:
    """The end of a part is its own, not that of all who hold its descriptors."""
    script = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'input()'], stdin=0); sys.exit(2)"
    async with kept(script, told) as (_, keeping):
        assert await keeping == 2


async def test_a_part_has_a_session_of_its_own(told: Told) -> None:
    async with kept("import os; print(os.getsid(0) == os.getpid(), flush=True); input()", told):
        await told.until("said")
    assert told.named("said")[0]["text"] == "True"


async def test_renewed_it_finishes_and_is_started_anew_at_once(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAUSE_S_FIRST", 600.0)
    async with kept(WAITS, told) as (part, _):
        for life in (1, 2):
            await told.until("said", life)
            await part.renew(30)
            await told.until("started", life + 1)
    assert [facts["code"] for facts in told.named("renewed")] == [-signal.SIGTERM] * 2
    assert told.named("died") == []


async def test_what_does_not_finish_when_renewed_is_killed(told: Told) -> None:
    async with kept(STUBBORN, told) as (part, _):
        await told.until("said")
        await part.renew(0.05)
        await told.until("started", 2)
    assert told.named("renewed")[0]["code"] == -signal.SIGKILL


async def test_stopped_while_it_is_renewed_it_is_not_hurried(told: Told) -> None:
    async with kept(TWICE, told) as (part, keeping):
        await told.until("said", text="up")
        renewing = asyncio.create_task(part.renew(600))
        await told.until("said", text="asked")
        hurry = asyncio.Event()
        stopping = asyncio.create_task(part.stop(600, hurry))
        await asyncio.sleep(0.05)
        assert len([facts for facts in told.named("said") if facts["text"] == "asked"]) == 1
        hurry.set()
        await stopping
        await renewing
        assert await keeping == 0
    assert len(told.named("started")) == 1


async def test_renewing_what_does_not_run_does_nothing(told: Told) -> None:
    part = SupervisedProcess("part", ["/no/such/program"], told)
    await part.renew(30)
    assert told.events == []


async def test_a_descriptor_is_left_open_for_every_life(told: Told, hasty: None) -> None:
    reading, writing = os.pipe()
    part = SupervisedProcess(
        "part", [sys.executable, "-c", f"import os; os.write({writing}, b'x'); {WAITS}"], told, (writing,)
    )
    with deaths_seen_by(part):
        keeping = asyncio.create_task(part.keep())
        await told.until("said")
        await part.renew(30)
        await told.until("said", 2)
        part.kill()
        await keeping
    os.close(writing)
    assert os.read(reading, 10) == b"xx"
    os.close(reading)
