"""Several processes make versions of one Object at once, over the gateway: one after the other, each wholly."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from aaiclick.config import reset_settings
from aaiclick.data import data_context, list_versions, open_object

pytestmark = pytest.mark.timeout(300)

PROCESSES = 8 if "TEST_LONG" in os.environ else 3
STEPS = 3

WRITES = """
import asyncio, sys
from aaiclick.data import data_context, open_object

async def main(writer, steps):
    async with data_context() as context:
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        for step in range(steps):
            whole = await context.create_object_from_value({"row": list(range(40)), "by": [f"{writer}-{step}"] * 40})
            await whole.materialize("whole", full_refresh=True, keep=100)
            keyed = await open_object("keyed")
            await keyed.upsert({"key": [f"{writer}-{step}", "all"], "by": [writer, writer]}, key="key", keep=100)

asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))
"""


async def test_processes_at_once_do_not_mix_and_lose_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AAICLICK_LOCAL_ROOT", str(tmp_path / "root"))
    monkeypatch.delenv("AAICLICK_CH_URL", raising=False)
    reset_settings()
    async with data_context() as context:
        await context.create_object({"key": "String", "by": "Int64"}, name="keyed")
        done = await asyncio.to_thread(at_once)
        assert done == [""] * PROCESSES
        count = PROCESSES * STEPS
        keyed = await (await open_object("keyed")).data()
        assert sorted(keyed["key"]) == sorted([f"{w}-{s}" for w in range(PROCESSES) for s in range(STEPS)] + ["all"])
        assert [each.number for each in await list_versions("keyed")] == list(range(1, count + 2))
        seen = set()
        for each in await list_versions("whole"):
            found = await (await open_object("whole", version=each.number)).data()
            assert sorted(found["row"]) == list(range(40))
            (by,) = set(found["by"])
            seen.add(by)
        assert seen == {f"{w}-{s}" for w in range(PROCESSES) for s in range(STEPS)}


def at_once() -> list[str]:
    """All are told to begin when all are there; gives what each had to complain of."""
    pipe = subprocess.PIPE
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITES, str(number), str(STEPS)], stdin=pipe, stdout=pipe, stderr=pipe, text=True
        )
        for number in range(PROCESSES)
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    return [writer.communicate()[1] for writer in writers]
