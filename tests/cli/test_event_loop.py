"""Running what is asynchronous, and Ctrl-C meanwhile."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from aaiclick.cli.event_loop import wait_for
from tests.support import warm

SLOW_TO_CLOSE = """
import asyncio
from aaiclick.cli import errors
from aaiclick.cli.event_loop import wait_for

async def closes_slowly():
    print("on", flush=True)
    try:
        await asyncio.sleep(60)
    finally:
        print("closing", flush=True)
        await asyncio.sleep(60)

raise SystemExit(errors.run(lambda: wait_for(closes_slowly())))
"""


async def answers() -> int:
    return 5


def test_the_answer_is_given_and_ctrl_c_is_as_before() -> None:
    before = signal.getsignal(signal.SIGINT)
    assert wait_for(answers()) == 5
    assert signal.getsignal(signal.SIGINT) is before


@pytest.fixture
def pythons_own() -> Iterator[None]:
    """Ctrl-C is heard as in a new process, whatever other tests have left."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("pythons_own")
def test_the_first_ctrl_c_lets_it_close() -> None:
    closed = []

    async def interrupted() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        try:
            await asyncio.sleep(60)
        finally:
            closed.append(await answers())

    with pytest.raises(KeyboardInterrupt):
        wait_for(interrupted())
    assert closed == [5]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_second_ctrl_c_does_not_wait_for_that() -> None:
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-c", SLOW_TO_CLOSE]
    process = warm.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for line in ("on\n", "closing\n"):
        assert process.stdout.readline() == line
        process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=50)
    assert (process.returncode, said) == (130, "aaiclick: interrupted\n")


def test_in_a_thread_of_its_own_it_hears_no_signals() -> None:
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(wait_for(answers())))
    thread.start()
    thread.join()
    assert found == [5]


async def test_in_a_thread_beside_a_loop_that_hears_them_it_leaves_them_to_that_loop() -> None:
    before = signal.getsignal(signal.SIGINT)
    heard = signal.signal(signal.SIGINT, lambda *_: None)  # as asyncio.run does in the main thread
    try:
        assert await asyncio.to_thread(wait_for, answers()) == 5
    finally:
        signal.signal(signal.SIGINT, heard)
    assert signal.getsignal(signal.SIGINT) is before
