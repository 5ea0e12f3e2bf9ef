"""A command ends with its caller, whatever becomes of that; what it leaves behind ends with it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from aaiclick.executors import process_groups
from aaiclick.executors.process_groups import Command, run_command
from tests.support.bodies import is_alive, pids_in, until

CALLER = """
import asyncio, os, sys
from aaiclick.executors.process_groups import Command, run_command
script = f"(trap '' TERM HUP; while :; do sleep 0.1; done) & echo $! $$ > {sys.argv[1]}; sleep 1000"
asyncio.run(run_command(Command(["/bin/sh", "-c", script], dict(os.environ)), print, print))
"""


def script(text: str, **options: object) -> Command:
    return Command(["/bin/sh", "-c", text], dict(os.environ), **options)  # type: ignore[arg-type]


async def ran(command: Command) -> tuple[int, bytes, bytes]:
    said: tuple[list[bytes], list[bytes]] = ([], [])
    code = await run_command(command, said[0].append, said[1].append)
    return code, b"".join(said[0]), b"".join(said[1])


async def test_its_output_and_its_exit_code_are_told() -> None:
    assert await ran(script("echo out; echo err >&2; exit 7")) == (7, b"out\n", b"err\n")
    assert await ran(script("kill -9 $$")) == (-9, b"", b"")
    assert await ran(script("cat; pwd", stdin=b"x" * 300_000, cwd="/")) == (0, b"x" * 300_000 + b"/\n", b"")
    assert (await ran(script("true", stdin=b"x" * 300_000)))[0] == 0  # it reads nothing of it


async def test_nothing_is_left_when_the_process_that_waits_is_killed(tmp_path: Path) -> None:
    caller = subprocess.Popen([sys.executable, "-c", CALLER, str(tmp_path / "pids")])  # noqa: ASYNC220
    try:
        await until(lambda: (tmp_path / "pids").exists() and len(pids_in(tmp_path / "pids")) == 2)
        assert all(map(is_alive, pids_in(tmp_path / "pids")))
    finally:
        caller.send_signal(signal.SIGKILL)
        caller.wait()
    await until(lambda: not any(map(is_alive, pids_in(tmp_path / "pids"))))


async def test_what_goes_on_in_the_background_ends_with_it(tmp_path: Path) -> None:
    code, out, _ = await ran(script(f"sleep 1000 & echo $! > {tmp_path / 'pid'}; echo done"))
    assert (code, out) == (0, b"done\n")
    await until(lambda: not is_alive(pids_in(tmp_path / "pid")[0]))


async def test_a_process_that_left_the_group_does_not_hold_its_end_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_groups, "OUTPUT_S_MAX", 0.05)
    leaver = "import os, sys, time; os.setsid(); open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(1000)"
    place = tmp_path / "pid"
    text = f'"{sys.executable}" -c "{leaver}" {place} & while [ ! -s {place} ]; do sleep 0.01; done; echo done'
    try:
        assert (await ran(script(text)))[:2] == (0, b"done\n")
    finally:
        os.kill(pids_in(place)[0], signal.SIGKILL)


async def test_it_may_clean_up_before_it_is_killed(tmp_path: Path) -> None:
    text = f"trap 'echo cleaned >> {tmp_path / 'note'}; exit 0' TERM; echo begun; while :; do sleep 0.01; done"
    begun = asyncio.Event()
    running = asyncio.create_task(run_command(script(text, grace_s=60), lambda _: begun.set(), print))
    await begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (tmp_path / "note").read_text() == "cleaned\n"


async def test_it_ends_however_early_it_is_stopped(tmp_path: Path) -> None:
    for steps in range(12):
        running = asyncio.create_task(run_command(script("sleep 1000 & sleep 1000", grace_s=0), print, print))
        for _ in range(steps):
            await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running


async def test_its_limits_hold() -> None:
    hungry = Command([sys.executable, "-c", "bytearray(10**9)"], dict(os.environ), memory_mb=200)
    assert (await ran(hungry))[0] == 1
    assert (await ran(script("while :; do :; done", cpu_s=1)))[0] in (-signal.SIGXCPU, -signal.SIGKILL)


async def test_what_cannot_be_started_raises() -> None:
    for command in (Command(["no-such-program"], {}), Command(["/bin/true"], {}, cwd="/no/such/place")):
        with pytest.raises(OSError, match="No such file"):
            await ran(command)


async def test_a_listener_that_raises_ends_it() -> None:
    def full(_: bytes) -> None:
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        await run_command(script("echo x; sleep 1000"), full, full)
