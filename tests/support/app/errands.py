"""The application that fleets of workers run: bodies that wait for a file, and note in another what they do."""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import subprocess
import threading
import time
from pathlib import Path

from aaiclick import get_current_run

STEPS = 20_000
PAUSE_S = 0.02


def note(place: str, name: str, what: str, pid: int = 0) -> None:
    """One line, written at once: several processes write into the same file."""
    line = f"{name} {what} {pid or os.getpid()}\n"
    with open(Path(place) / "notes", "ab", buffering=0) as notes:
        notes.write(line.encode())


def may_end(place: str, name: str) -> bool:
    return any((Path(place) / gate).exists() for gate in ("go", f"go-{name}"))


def quick(value: object = None) -> object:
    return value


def waits(place: str, name: str) -> int:
    note(place, name, "began")
    while not may_end(place, name):
        time.sleep(PAUSE_S)
    note(place, name, "ended")
    return os.getpid()


async def waits_async(place: str, name: str) -> int:
    note(place, name, "began")
    try:
        while not may_end(place, name):  # noqa: ASYNC110 (what is waited for is a file)
            await asyncio.sleep(PAUSE_S)
    except asyncio.CancelledError:
        note(place, name, "cancelled")
        raise
    note(place, name, "ended")
    return os.getpid()


def spins(place: str, name: str) -> int:
    """Computes, and lets no other thread of its process in for long."""
    note(place, name, "began")
    while not may_end(place, name):
        sum(range(STEPS))
    note(place, name, "ended")
    return os.getpid()


def ignores(place: str, name: str) -> int:
    """Cannot be talked to, and has a child in a session of its own."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    grandchild = subprocess.Popen(["sleep", "3600"], start_new_session=True)
    note(place, name, "grandchild", grandchild.pid)
    note(place, name, "began")
    while not may_end(place, name):
        time.sleep(PAUSE_S)
    return os.getpid()


def dies(place: str, name: str) -> None:
    note(place, name, "began")
    os.kill(os.getpid(), signal.SIGKILL)


def fails(place: str, name: str, times: int, error: str = "ValueError") -> int:
    """Fails so many times, then gives the number of its attempt."""
    note(place, name, "began")
    attempt = (Path(place) / "notes").read_text().count(f"{name} began ")
    if attempt <= times:
        raise {"ValueError": ValueError, "KeyError": KeyError}[error](f"attempt {attempt}")
    return attempt


def tick(place: str, name: str) -> None:
    """Note that this body is alive now, by the clock that all processes of the machine share."""
    with open(Path(place) / f"ticks-{name}-{os.getpid()}", "ab", buffering=0) as ticks:
        ticks.write(f"{time.monotonic()}\n".encode())


def ticks(place: str, name: str) -> int:
    """Says all the time that it is alive, whoever wants it to end."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    note(place, name, "began")
    while not may_end(place, name):
        tick(place, name)
        time.sleep(PAUSE_S / 2)
    return os.getpid()


async def ticks_async(place: str, name: str) -> int:
    note(place, name, "began")
    while not may_end(place, name):
        tick(place, name)
        await asyncio.sleep(PAUSE_S / 2)
    return os.getpid()


def talks(place: str, name: str) -> None:
    """Writes to its log before it waits, while it does, and at its end."""
    print("before the wait", flush=True)
    note(place, name, "began")
    line = 0
    while not may_end(place, name):
        print(f"line {line}", flush=True)
        line += 1
        time.sleep(PAUSE_S)
    print(f"after {line} lines", flush=True)
    note(place, name, "ended")


def holds(place: str, name: str) -> list[int]:
    """Lock a file for each GPU that was granted, as long as this process lives: what is locked was granted twice."""
    gpus = [int(index) for index in get_current_run().resources["gpu"]]
    files = [open(Path(place) / f"gpu-{index}", "w") for index in gpus]  # noqa: SIM115 (open until the process ends)
    seen = os.environ.get("CUDA_VISIBLE_DEVICES")
    if seen != ",".join(map(str, gpus)):
        note(place, name, f"sees-{seen}")
    for index, file in zip(gpus, files, strict=True):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            note(place, name, f"overlap-on-{index}")
        note(place, name, f"gpu-{index}")
    waits(place, name)
    for file in files:
        file.close()
    return gpus
