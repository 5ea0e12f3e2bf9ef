"""kill -9 of whoever makes a version, before and within any of its statements: the old one or the new one is there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from aaiclick.config import reset_settings

pytestmark = pytest.mark.timeout(600)

LONG = "TEST_LONG" in os.environ

SCRIPT = """
import asyncio, itertools, os, signal, sys
from aaiclick.data import data_context, list_versions, open_object
from aaiclick.data.clients import opening, pool  # loaded once, for all copies of this process
import clickhouse_connect, pyarrow

OLD = {1: 10, 2: 20, 3: 30}
OPERATIONS = {
    "upserted": {1: 10, 2: 21, 3: 30, 4: 41},
    "incremental": {1: 10, 2: 20, 3: 31, 4: 41},
    "partition": {1: 10, 2: 21, 3: 30},
    "refreshed": {2: 21, 3: 31, 4: 41},
}


async def do(context, name):
    rows = await context.create_object_from_value({"id": [2, 3, 4], "v": [21, 31, 41]})
    if name == "upserted":
        await (await context.open_object(name)).upsert(rows.where("id != 3"), key="id")
    elif name == "incremental":
        await rows.materialize(name, incremental_by="id")
    elif name == "partition":
        await rows.materialize(name, incremental_by="id", partition=(2, 3))
    else:
        await rows.materialize(name, full_refresh=True)


class Killing:
    def __init__(self, client, place, within):
        self._client, self._place, self._within, self._done = client, place, within, 0

    def __getattr__(self, verb):
        call = getattr(self._client, verb)
        if verb not in ("command", "rows", "make", "insert"):
            return call

        async def counted(*args, **kwargs):
            self._done += 1
            if args[0].startswith(self._place) if isinstance(self._place, str) else self._done == self._place:
                if self._within:
                    running = asyncio.ensure_future(call(*args, **kwargs))
                    await asyncio.sleep(0.003)
                os.kill(os.getpid(), signal.SIGKILL)
            return await call(*args, **kwargs)

        return counted


async def killed(name, place, within):
    async with data_context() as context:
        await begin(context, name)
        context._client = Killing(context._client, place, within)
        await do(context, name)
        context._client = context._client._client


async def content(name):
    found = await (await open_object(name)).data()
    assert len(found["id"]) == len(set(found["id"])), found
    return dict(zip(found["id"], found["v"]))


async def begin(context, name):
    await context.delete_object(name)
    await context.create_object_from_value({"id": list(OLD), "v": list(OLD.values())}, name=name)


async def check(name):
    async with data_context() as context:
        assert await content(name) in (OLD, OPERATIONS[name]), await content(name)
        await do(context, name)
        assert await content(name) == OPERATIONS[name], await content(name)
        assert len(await list_versions(name)) <= 3
        own = context._lifetime.prefix
        found = await context.client.rows("SELECT name FROM system.tables WHERE match(name, '^c[0-9]+_')")
        left = [each for each in found.columns[0] if not each.startswith(own)]
        assert not left, left


def copy(work):
    child = os.fork()
    if child == 0:
        code = 1
        try:
            asyncio.run(work)
            code = 0
        finally:
            os._exit(code)
    work.close()
    return child


def ended(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


async def own(reading, writing):
    async with data_context():
        os.write(writing, b".")
        await asyncio.to_thread(os.read, reading, 1)


def main(who, name, within, places):
    ready, done = os.pipe(), os.pipe()
    owner = copy(own(done[0], ready[1])) if who == "writer" else None
    if owner is not None:
        os.read(ready[0], 1)
    kills = 0
    for place in places or itertools.count(1):
        code = ended(copy(killed(name, place, within)))
        assert code in (0, -signal.SIGKILL), code
        assert ended(copy(check(name))) == 0, place
        if code == 0:
            break
        kills += 1
    if owner is not None:
        os.write(done[1], b".")
        assert ended(owner) == 0
    print(kills)


main(sys.argv[1], sys.argv[2], sys.argv[3] == "within", sys.argv[4:])
"""


ATTACH, FIRST, NEXT = "ALTER TABLE `c", "RENAME TABLE `p_", "RENAME TABLE `c"
"""How the statements begin that put rows in, make the Object a version, and publish the next one."""

EVERY: list[tuple[str, str, str, list[str]]] = [
    (who, name, when, [])
    for who in ("writer", "owner")
    for name in ("upserted", "incremental", "partition", "refreshed")
    for when in ("before", "within")
]
SOME = [("owner", "upserted", "before", [ATTACH, NEXT]), ("writer", "incremental", "within", [FIRST, NEXT])]


@pytest.mark.parametrize(("who", "name", "when", "places"), EVERY if LONG else SOME)
def test_a_kill_at_any_statement_leaves_a_version_wholly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, who: str, name: str, when: str, places: list[str]
) -> None:
    """The writer alone, over the gateway, and the writer that owns the engine, too; in the long run at each one."""
    monkeypatch.setenv("AAICLICK_LOCAL_ROOT", str(tmp_path / "root"))
    monkeypatch.delenv("AAICLICK_CH_URL", raising=False)
    reset_settings()
    command = [sys.executable, "-c", SCRIPT, who, name, when, *places]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr[-4000:]
    assert int(found.stdout) == len(places) if places else int(found.stdout) >= 10
