"""What the server's answers cost, beside a million tasks: rates and times of answers, against what HTTP alone costs.

A server of its own process answers callers that keep their connections. Small questions are asked by several at once,
large pages by one. The floor: the same uvicorn answering a constant; and a bare SELECT of one row by the same driver.

Run: python -m tests.servers postgres mariadb -- python -m benchmarks.rest [sqlite postgres mariadb] [--scale 1.0]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import sqlite3
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from tempfile import TemporaryDirectory
from typing import Any

from sqlalchemy import text
from sqlalchemy.engine import make_url

from aaiclick.config import reset_settings
from aaiclick.orchestration.access.tokens import create_token
from aaiclick.orchestration.store.database import Database
from aaiclick.orchestration.store.session import Session
from benchmarks import metrics
from benchmarks.rest_callers import Figures, Request, measure
from benchmarks.setting import fresh_database, machine

HOST = "127.0.0.1"
CALLERS = 8
ENTRYPOINT = "benchmarks.bodies.marked"
WIDE = 10_000_000
"""The job with many tasks; its tasks are numbered from there on."""

WIDE_TASKS = 10_000
_AT = "'2026-01-01 00:00:00.000000'"


async def fill(database: Database, count: int) -> None:
    """So many tasks of 1,000 jobs, and one more job of 10,000 tasks in layers of 100, each after one of the last."""
    await metrics.fill(database, count)
    kind = database.dialect.name
    at = f"{_AT}::timestamptz" if kind == "postgresql" else _AT
    numbers = f"WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < {WIDE_TASKS})"
    task = "id, job_id, name, entrypoint, kwargs, status, epoch, created_at, started_at, completed_at"
    edge = "previous_id, previous_type, next_id, next_type, job_id"
    job = "id, name, status, run_type, preservation_mode, created_at"
    values = f"{WIDE} + x, {WIDE}, 'part', 'm.f', '{{}}', 'completed', 1, {at}, {at}, {at}"
    edges = f"{WIDE} + x, 'task', {WIDE} + x + 100, 'task', {WIDE}"

    async def work(session: Session) -> None:
        if kind == "mariadb":
            await session.run(text("SET SESSION max_recursive_iterations = 4294967295"))
        await session.run(
            text(f"INSERT INTO jobs ({job}) VALUES ({WIDE}, 'wide', 'completed', 'manual', 'none', {at})")
        )
        await session.run(text(f"INSERT INTO tasks ({task}) {numbers} SELECT {values} FROM n"))
        few = f"SELECT {edges} FROM n WHERE x <= {WIDE_TASKS - 100}"
        await session.run(text(f"INSERT INTO dependencies ({edge}) {numbers} {few}"))

    await database.transact(work)
    async with database.connection() as connection:
        if kind != "mariadb":
            await connection.execute(text("ANALYZE"))


@asynccontextmanager
async def process(*command: str) -> AsyncIterator[str]:
    """A program of ours; gives the first line that it prints."""
    running = await asyncio.create_subprocess_exec(
        sys.executable, "-m", *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    try:
        assert running.stdout is not None
        yield (await running.stdout.readline()).decode()
    finally:
        running.terminate()
        await running.communicate()


@asynccontextmanager
async def server(url: str) -> AsyncIterator[tuple[tuple[str, int], str]]:
    """Our server on that database: where it is, and an admin's token."""
    with TemporaryDirectory() as root:
        os.environ |= {"AAICLICK_SQL_URL": url, "AAICLICK_LOCAL_ROOT": root}
        os.environ |= {"AAICLICK_ENTRYPOINT_PREFIXES": "benchmarks"}
        reset_settings()
        token = (await create_token("bench", "admin")).text
        async with process("aaiclick", "server", "start", "--port", "0") as line:
            found = re.search(r":([0-9]+)/", line)
            if found is None:
                raise SystemExit(line)
            yield (HOST, int(found[1])), token


async def floor(answers: int) -> Figures:
    async with process("benchmarks.rest_floor") as line:
        return await measure((HOST, int(line)), "none", lambda _: ("GET", "/", None), answers=answers, callers=CALLERS)


async def bare_select(url: str, answers: int) -> float:
    """Milliseconds for one row of a job by its id, on one connection, without anything of ours."""
    at = make_url(url)
    if at.drivername.startswith("sqlite"):
        connection = sqlite3.connect(at.database or "")
        return await _time(answers, lambda: _fetch_sqlite(connection))
    if at.drivername.startswith("postgresql"):
        import asyncpg  # only one of the drivers is needed

        link = await asyncpg.connect(url.replace("+asyncpg", ""))
        return await _time(answers, lambda: link.fetchrow("SELECT * FROM jobs WHERE id = $1", WIDE))
    import asyncmy  # only one of the drivers is needed

    given = (
        {"unix_socket": at.query["unix_socket"]} if "unix_socket" in at.query else {"host": at.host, "port": at.port}
    )
    pair = await asyncmy.connect(user=at.username, password=at.password or "", db=at.database, **given)
    async with pair.cursor() as cursor:

        async def fetch() -> None:
            await cursor.execute("SELECT * FROM jobs WHERE id = %s", (WIDE,))
            await cursor.fetchone()

        return await _time(answers, fetch)


async def _fetch_sqlite(connection: sqlite3.Connection) -> None:
    connection.execute("SELECT * FROM jobs WHERE id = ?", (WIDE,)).fetchone()


async def _time(answers: int, work: Callable[[], Awaitable[Any]]) -> float:
    await work()
    began = time.perf_counter()
    for _ in range(answers):
        await work()
    return 1000 * (time.perf_counter() - began) / answers


def small(count: int) -> dict[str, Callable[[int], Request]]:
    """What is asked by several at once."""
    at = "/api/v1"

    def submit(key: str | None) -> Callable[[int], Request]:
        def asked(number: int) -> Request:
            more = {} if key is None else {"key": key}
            return "POST", f"{at}/jobs", {"name": "bench", "entrypoint": ENTRYPOINT, "kwargs": {"x": 1}} | more

        return asked

    return {
        "read a job": lambda number: ("GET", f"{at}/jobs/{1 + number % metrics.JOBS}", None),
        "read a task": lambda number: ("GET", f"{at}/tasks/{1 + 7919 * number % count}", None),
        "list 20 jobs": lambda _: ("GET", f"{at}/jobs?limit=20", None),
        "list 20 tasks of a job with 10,000": lambda _: ("GET", f"{at}/jobs/{WIDE}/tasks?limit=20", None),
        "submit a job": submit(None),
        "submit it again with its key": submit("same"),
    }


LARGE = {
    "list 1,000 jobs": "/api/v1/jobs?limit=1000",
    "list 1,000 tasks of a job with 10,000": f"/api/v1/jobs/{WIDE}/tasks?limit=1000",
    "the last 1,000 of them": f"/api/v1/jobs/{WIDE}/tasks?limit=1000&after={WIDE + WIDE_TASKS - 1000}",
    "those that failed, none": f"/api/v1/jobs/{WIDE}/tasks?status=failed",
    "graph of a job with 10,000 tasks": f"/api/v1/jobs/{WIDE}/graph",
    "stats of a job with 10,000 tasks": f"/api/v1/jobs/{WIDE}/stats",
    "dead letters, none": "/api/v1/dead-letters",
    "the newest events of a job": f"/api/v1/events?job_id={WIDE}",
    "metrics": "/metrics",
}
"""What is asked by one."""


async def bench(kind: str, count: int, answers: int, bare: Figures) -> None:
    async with fresh_database(kind) as url:
        database = await Database.open(url)
        try:
            await fill(database, count)
        finally:
            await database.close()
        each_ms = await bare_select(url, answers)
        print(f"| {kind} | a bare SELECT of a job, one connection | {1000 / each_ms:,.0f} | {each_ms:.2f} | | | |")
        async with server(url) as (where, token):
            for what, request in small(count).items():
                found = await measure(where, token, request, answers=answers, callers=CALLERS)
                show(kind, what, found, bare)
            for what, path in LARGE.items():
                asked: Request = ("GET", path, None)
                found = await measure(
                    where, token, lambda _, asked=asked: asked, answers=max(5, answers // 50), callers=1
                )
                show(kind, what, found, None)


def show(kind: str, what: str, found: Figures, bare: Figures | None) -> None:
    ratio = "" if bare is None else f"{found.per_s / bare.per_s:.3f}"
    row = f"{found.per_s:,.0f} | {found.p50_ms:.1f} | {found.p95_ms:.1f} | {ratio} | {found.body_bytes:,}"
    print(f"| {kind} | {what} | {row} |", flush=True)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", default=["sqlite", "postgres", "mariadb"])
    parser.add_argument("--scale", type=float, default=1.0, help="1.0 for a million tasks")
    parser.add_argument("--answers", type=int, default=2000, help="of each small question; a fiftieth of each large")
    given = parser.parse_args()
    print(f"{machine()}; {CALLERS} callers for what has a ratio, 1 for the rest; server and callers a process each")
    print("| database | what | answers/s | p50 ms | p95 ms | of the floor | bytes |\n|---|---|---|---|---|---|---|")
    bare = await floor(given.answers)
    show("none", "the floor: uvicorn answers a constant", bare, bare)
    for kind in given.kinds:
        await bench(kind, int(1_000_000 * given.scale), given.answers, bare)


if __name__ == "__main__":
    asyncio.run(main())
