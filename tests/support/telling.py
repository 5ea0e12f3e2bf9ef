"""Other processes on a bus. Run as a module it is one of them, which does what it is asked and ends.

`tell` says its words and ends. `hear` prints «listening», waits for words and prints them.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from aaiclick.orchestration.bus import open_bus
from tests.support import warm

WAIT_S_MAX = 60.0


async def _tell(url: str, words: list[str]) -> None:
    bus = open_bus(url)
    bus.tell(words)
    await bus.flush()
    await bus.close()


async def _hear(url: str) -> None:
    bus = open_bus(url)
    await bus.listen()
    print("listening", flush=True)
    print(json.dumps(sorted(await bus.wait(WAIT_S_MAX))), flush=True)
    await bus.close()


async def _start(*arguments: str) -> asyncio.subprocess.Process:
    surroundings = {name: value for name, value in os.environ.items() if not name.startswith("AAICLICK_TEST_")}
    return await warm.create_subprocess_exec(
        *(sys.executable, "-m", "tests.support.telling", *arguments), stdout=asyncio.subprocess.PIPE, env=surroundings
    )


async def tell_from_another_process(url: str, *words: str) -> None:
    process = await _start("tell", url, *words)
    assert await process.wait() == 0


class Hearer:
    """Another process that listens."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def heard(self) -> set[str]:
        """What it heard; ends it."""
        assert self.process.stdout is not None
        return set(json.loads(await self.process.stdout.readline()))


@asynccontextmanager
async def hearer(url: str) -> AsyncIterator[Hearer]:
    """Another process, which listens by now."""
    process = await _start("hear", url)
    try:
        assert process.stdout is not None
        assert await process.stdout.readline() == b"listening\n"
        yield Hearer(process)
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()


if __name__ == "__main__":
    what, where, *said = sys.argv[1:]
    asyncio.run(_tell(where, said) if what == "tell" else _hear(where))
