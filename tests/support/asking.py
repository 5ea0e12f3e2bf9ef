"""Bodies that ask their worker for something while they run."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from aaiclick.ids import new_id, new_ids
from aaiclick.orchestration.execution.executors.child_process.run_requests import RunRequests
from aaiclick.orchestration.execution.runs.current import _find, cancel_requested, current_services, find_callback


def some_ids(count: int) -> list[int]:
    """One by one."""
    return [new_id() for _ in range(count)]


def many_ids(count: int) -> list[int]:
    """All at once."""
    return new_ids(count)


async def ids_in_a_loop(count: int) -> list[int]:
    """While the loop does other things too."""
    made = []
    for _ in range(count):
        made.append(new_id())
        await asyncio.sleep(0)
    return made


def ids_on_threads(count: int, threads: int) -> list[int]:
    """Several ask at once."""
    with ThreadPoolExecutor(threads) as pool:
        parts = list(pool.map(lambda _: [new_id() for _ in range(count)], range(threads)))
    return [made for part in parts for made in part]


def ids_of_a_copy() -> tuple[int, int]:
    """One of this process, and one of a process that it forks."""
    mine, (reading, writing) = new_id(), os.pipe()
    pid = os.fork()
    if not pid:
        os.write(writing, str(new_id()).encode())
        os._exit(0)
    os.waitpid(pid, 0)
    return mine, int(os.read(reading, 100))


def asks_until_stopped() -> str:
    """A thread asks without end while the body waits to be stopped."""
    ended = threading.Event()

    def ask() -> None:
        while not ended.is_set():
            new_ids(50)
            time.sleep(0.001)

    threading.Thread(target=ask, daemon=True).start()
    while not cancel_requested():
        time.sleep(0.01)
    ended.set()
    return "stopped"


def asks_until_killed() -> None:
    """Deaf to requests: only a signal ends it."""
    while True:
        new_ids(50)
        time.sleep(0.001)


def in_a_loop_of_its_own(value: object) -> object:
    """As a plain function may have one."""

    async def gives() -> object:
        await asyncio.sleep(0)
        return value

    return asyncio.run(gives())


async def holds() -> str:
    """One table, that is to be made."""
    services, running = current_services(), _find()
    assert services is not None
    assert running is not None
    return await services.hold(running.claim, ["t2_1_1"])


async def over_its_line(count: int, value: str) -> list[int]:
    """Ids and a mask, as a body gets them that does not run in the worker's process."""
    services = current_services()
    assert isinstance(services, RunRequests)
    await asyncio.to_thread(services.want_masks, [value])
    print(value)
    return await asyncio.to_thread(services.want_ids, count)


async def counts_slots() -> int:
    """All there are."""
    services = current_services()
    assert services is not None
    return await services.slots()


async def holds_and_counts() -> int:
    """Its loop goes on meanwhile."""
    holding = asyncio.ensure_future(holds())
    counted = 0
    while not holding.done():
        counted += 1
        await asyncio.sleep(0.001)
    return counted


async def asks_for_a_callback() -> str | None:
    return await find_callback("d")
