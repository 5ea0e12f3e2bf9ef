"""What the heartbeats of a thousand nodes cost: of one server, and of the database beside a bare floor.

So many workers, each on a node of its own, register at a server. Then all of them beat at a steady rate for a while, as
they would by themselves (a session of 30 s has a heartbeat every 10 s), from this process. CPU is that of the server
and of all processes of PostgreSQL while they beat, above what the same processes use in the same time without
heartbeats. The floor renews a row of a plain table for each by bare asyncpg, at the same rate.

Run: python -m tests.servers postgres -- python -m benchmarks.heartbeats [--nodes 1000] [--seconds 60] [--every 10]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from tempfile import TemporaryDirectory
from typing import NamedTuple

import asyncpg
import psutil

from aaiclick.config import reset_settings
from aaiclick.orchestration.access.tokens import create_token
from aaiclick.orchestration.coordinator.http.calls import Calls
from aaiclick.orchestration.coordinator.http.client import HttpCoordinator
from aaiclick.orchestration.models.node_info import NodeDescription
from aaiclick.server_address import Address
from benchmarks.remote_workers import started
from benchmarks.setting import fresh_database, machine

PORT = 8961


class Cost(NamedTuple):
    """Of one heartbeat: CPU microseconds of the server and of PostgreSQL, and milliseconds until the answer."""

    server_micros: float
    database_micros: float
    p50_ms: float
    p95_ms: float


async def measure(nodes: int, seconds: float, every_s: float) -> None:
    async with fresh_database("postgres") as url:
        with TemporaryDirectory() as root:
            env = {**os.environ, "AAICLICK_SQL_URL": url, "AAICLICK_LOCAL_ROOT": root}
            os.environ["AAICLICK_SQL_URL"] = url
            reset_settings()
            server = started(env, "server", "start", "--port", str(PORT), says="serving")
            try:
                found = await _over_server(psutil.Process(server.pid), nodes, seconds, every_s)
            finally:
                server.terminate()
                server.wait(60)
        floor = await _floor(url, nodes, seconds, every_s)
    rate = nodes / every_s
    print(
        f"{nodes:,} nodes, {rate:,.0f} heartbeats a second: server {found.server_micros:.0f} µs of CPU each"
        f" ({found.server_micros * rate / 1e4:.1f} % of a core), PostgreSQL {found.database_micros:.0f} µs"
        f" ({found.database_micros * rate / 1e4:.1f} %), answer p50 {found.p50_ms:.1f} ms, p95 {found.p95_ms:.1f} ms"
    )
    print(
        f"floor, bare updates at the same rate: PostgreSQL {floor.database_micros:.0f} µs each,"
        f" answer p50 {floor.p50_ms:.1f} ms, p95 {floor.p95_ms:.1f} ms;"
        f" PostgreSQL's ratio {found.database_micros / floor.database_micros:.2f}; load {os.getloadavg()[0]:.1f}"
    )


async def _over_server(server: psutil.Process, nodes: int, seconds: float, every_s: float) -> Cost:
    token = (await create_token("bench", "worker")).text
    calls = Calls([Address.of(f"http://127.0.0.1:{PORT}")], lambda: token)
    coordinator = HttpCoordinator(calls)
    await coordinator.grant_ids()
    workers = [
        (await coordinator.register(hostname="bench", pid=1, node=NodeDescription(f"node-{number}"))).id
        for number in range(nodes)
    ]

    async def beat(number: int) -> None:
        orders = await coordinator.beat(workers[number], held=[])
        assert orders.alive, "its session is over"

    rest = await _used(server, asyncio.sleep(seconds))
    times: list[float] = []
    busy = await _used(server, _beating(beat, nodes, seconds, every_s, times))
    calls.close()
    return _cost(busy, rest, times)


async def _floor(url: str, nodes: int, seconds: float, every_s: float) -> Cost:
    pool = await asyncpg.create_pool(url.replace("+asyncpg", ""), min_size=4, max_size=4)
    await pool.execute(
        "CREATE TABLE floor_sessions (id bigint PRIMARY KEY, expires_at timestamptz) WITH (fillfactor=50)"
    )
    await pool.execute("INSERT INTO floor_sessions SELECT n, now() FROM generate_series(0, $1 - 1) AS n", nodes)

    async def beat(number: int) -> None:
        renewed = "UPDATE floor_sessions SET expires_at = clock_timestamp() + interval '30 s' WHERE id = $1"
        assert await pool.execute(renewed, number) == "UPDATE 1"

    try:
        rest = await _used(None, asyncio.sleep(seconds))
        times: list[float] = []
        busy = await _used(None, _beating(beat, nodes, seconds, every_s, times))
    finally:
        await pool.close()
    return _cost(busy, rest, times)


async def _beating(
    beat: Callable[[int], Awaitable[None]], nodes: int, seconds: float, every_s: float, times: list[float]
) -> None:
    """Let each node beat every so many seconds, spread evenly, until the time is over; note how long each took."""

    async def one(number: int) -> None:
        began = time.perf_counter()
        await beat(number)
        times.append((time.perf_counter() - began) * 1000)

    begun, under_way = time.perf_counter(), list[asyncio.Task[None]]()
    for place in range(int(seconds / every_s * nodes)):
        pause = begun + place * every_s / nodes - time.perf_counter()
        if pause > 0:
            await asyncio.sleep(pause)
        under_way.append(asyncio.create_task(one(place % nodes)))
    await asyncio.gather(*under_way)


async def _used(server: psutil.Process | None, work: Awaitable[None]) -> tuple[float, float]:
    """Return the CPU seconds of the server and of PostgreSQL during some work."""
    before = _cpu_s(server), _postgres_s()
    await work
    return _cpu_s(server) - before[0], _postgres_s() - before[1]


def _cost(busy: tuple[float, float], rest: tuple[float, float], times: Sequence[float]) -> Cost:
    ordered, micros = sorted(times), 1e6 / len(times)
    database = (busy[1] - rest[1]) * micros
    p95 = ordered[int(len(ordered) * 0.95)]
    return Cost((busy[0] - rest[0]) * micros, database, statistics.median(ordered), p95)


def _cpu_s(process: psutil.Process | None) -> float:
    if process is None:
        return 0.0
    used = process.cpu_times()
    return float(used.user + used.system)


def _postgres_s() -> float:
    """Of all processes of PostgreSQL on this machine: they stay as long as their connections do."""
    return sum(_cpu_s(each) for each in psutil.process_iter(["name"]) if each.info["name"].startswith("postgres"))


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1_000)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--every", type=float, default=10.0)
    given = parser.parse_args()
    print(f"{machine()}, load {os.getloadavg()[0]:.1f}")
    await measure(given.nodes, given.seconds, given.every)


if __name__ == "__main__":
    asyncio.run(main())
