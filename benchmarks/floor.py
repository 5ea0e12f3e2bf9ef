"""The bare floor: claim 100, complete 100 on a plain table with asyncpg, pipelined over two connections.

No graph, no fence, no history, no counters: what PostgreSQL and the driver cost by themselves.
"""

from __future__ import annotations

import asyncio
import time

import asyncpg

CLAIM = """with c as (select id from floor where state = 0 order by id limit 100 for update skip locked)
update floor set state = 1 from c where floor.id = c.id returning floor.id"""
DONE = "update floor set state = 2 from unnest($1::bigint[]) u(id) where floor.id = u.id and state = 1"
TABLE = """drop table if exists floor;
create table floor(id bigint primary key, state smallint not null default 0);
create index on floor(id) where state = 0"""


async def floor_rate(dsn: str, count: int) -> float:
    """Tasks a second."""
    claimer, completer = await asyncpg.connect(dsn), await asyncpg.connect(dsn)
    await claimer.execute(TABLE)
    await claimer.execute("insert into floor select generate_series(1, $1::int)", count)
    started, pending = time.perf_counter(), None
    while rows := await claimer.fetch(CLAIM):
        if pending:
            await pending
        pending = asyncio.ensure_future(completer.execute(DONE, [row[0] for row in rows]))
    if pending:
        await pending
    rate = count / (time.perf_counter() - started)
    await claimer.close()
    await completer.close()
    return rate
