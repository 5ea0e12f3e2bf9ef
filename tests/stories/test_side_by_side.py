"""Two fleets, a notebook and commands on one local root: the end of any of them leaves the others working."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import httpx
import pytest

from aaiclick.data.embedded.directory_lock import owner_pid
from aaiclick.orchestration import get_job, get_job_result, list_workers
from tests.support import warm
from tests.support.fleet import eventually
from tests.support.harvest import expected, harvest
from tests.support.local_fleet import LocalFleet, Place, machine

__all__ = ["machine"]

FIELDS = 2

NOTEBOOK = """
import asyncio, sys
from pathlib import Path
from aaiclick.data import data_context

async def main(first: int, place: Path) -> None:
    async with data_context() as context:
        if not first:
            await context.create_object({"batch": "Int64", "row": "Int64"}, name="batches")
        batches = await context.open_object("batches")
        while not place.joinpath("enough").exists():
            await batches.insert({"batch": [first] * 3, "row": [1, 2, 3]})
            own = await context.create_object_from_value([first, 1])
            assert await (own + 1).sum().data() == first + 3
            print(first, flush=True)
            first += 1
            await asyncio.sleep(0.1)

asyncio.run(main(int(sys.argv[1]), Path(sys.argv[2])))
"""


class Notebook:
    """A process that has a context of its own and writes batch after batch; it prints what was acknowledged."""

    running: ClassVar[list[subprocess.Popen[bytes]]] = []

    def __init__(self, machine: Place, first: int) -> None:
        self.out = machine.home / f"notebook{first}"
        with open(self.out, "wb") as out:
            command = [sys.executable, "-c", NOTEBOOK, str(first), str(machine.place)]
            self.process = warm.Popen(command, stdout=out, stderr=out)
        self.running.append(self.process)

    @property
    def said(self) -> list[str]:
        return self.out.read_text().splitlines()

    async def goes_on(self, count: int = 3) -> None:
        """So many batches later."""
        enough = len(self.said) + count

        def written() -> bool:
            assert self.process.poll() is None, self.out.read_text()
            return len(self.said) >= enough

        await eventually(written, self.out.read_text)


@pytest.fixture(autouse=True)
def notebooks() -> Iterator[None]:
    """None of them outlives its test."""
    yield
    while Notebook.running:
        Notebook.running[-1].kill()
        Notebook.running.pop().wait()


def token_of(fleet: LocalFleet) -> str:
    return Path(fleet.named("begins")[0]["token_file"]).read_text().strip()


async def command(*arguments: str) -> str:
    """An `aaiclick` command, which must end well."""
    run = await warm.create_subprocess_exec(
        sys.executable, "-m", "aaiclick", *arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    out, err = await run.communicate()
    assert run.returncode == 0, err
    return out.decode()


async def counted() -> dict[str, int]:
    each = "SELECT toString(batch) AS batch, toInt64(count()) AS rows FROM p_batches GROUP BY batch"
    found = await command("data", "query", "--json", f"SELECT groupArray(batch), groupArray(rows) FROM ({each})")
    return dict(zip(*json.loads(found)["rows"][0], strict=True))


async def a_job_completes(place: str = "") -> None:
    job = await harvest.submit(fields=FIELDS, place=place)

    async def ended() -> bool:
        found = await get_job(job.id)
        assert found is not None
        assert found.status in ("pending", "running", "completed"), found.error
        return found.status == "completed"

    await eventually(ended)
    assert await get_job_result(job.id) == expected(FIELDS)


async def first_and_second(machine: Place) -> tuple[LocalFleet, LocalFleet]:
    """Two that are started at the same time on a root that has nothing: one of them has the server."""
    both = [machine.start("--workers", "1", "--concurrency", "2") for _ in range(2)]
    for each in both:
        await each.up()
    first, second = sorted(both, key=lambda each: "beside" in each.named("begins")[0])
    assert second.named("begins")[0]["beside"] in (first.process.pid, None)
    assert second.named("begins")[0]["server"] is None
    assert [len(each.named("started", "server")) for each in (first, second)] == [1, 0]
    return first, second


async def test_two_fleets_a_notebook_and_commands_on_one_root_work_side_by_side(machine: Place) -> None:
    engine = machine.home / "root" / "chdb_data"
    notebook = Notebook(machine, 0)
    await notebook.goes_on()
    first, second = await first_and_second(machine)
    assert owner_pid(engine) == notebook.process.pid

    _, found, names, _ = await asyncio.gather(a_job_completes(), counted(), command("data", "list"), notebook.goes_on())
    assert set(found.values()) == {3}
    assert "batches" in names
    live = sorted(str(worker.name) for worker in await list_workers("active"))
    assert live == ["local-1", f"local-{second.process.pid}-1"]

    notebook.process.kill()
    notebook.process.wait()
    await eventually(lambda: owner_pid(engine) in (first.pid_of("engine"), second.pid_of("engine")))
    after = Notebook(machine, 1_000)
    await asyncio.gather(a_job_completes(), after.goes_on())

    first.family()
    first.process.kill()
    await asyncio.gather(second.until("inherits"), after.goes_on(), first.ended())
    await a_job_completes()
    server = second.named("inherits")[0]["server"]
    token = token_of(first)
    async with httpx.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=60) as client:
        assert (await client.get(f"{server}/jobs")).status_code == 200

    third = machine.start("--workers", "1", "--concurrency", "2")
    await third.up()
    second.family()
    second.process.send_signal(signal.SIGTERM)
    await asyncio.gather(third.until("inherits"), after.goes_on())
    assert await second.ended() == 0, second.explain()
    await a_job_completes()
    (machine.place / "enough").touch()
    assert await asyncio.to_thread(after.process.wait) == 0, after.out.read_text()
    third.family()
    third.process.send_signal(signal.SIGTERM)
    assert await third.ended() == 0, third.explain()

    stored = await counted()
    acknowledged = set(notebook.said + after.said)
    assert acknowledged <= set(stored)
    assert len(set(stored) - acknowledged) <= 1  # the notebook that was killed may not have read its last answer
    assert set(stored.values()) == {3}
