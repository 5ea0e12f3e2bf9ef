"""Which tables should change at every claim? Four layouts with the same meaning, in bare SQL, as ratios to the floor.

- wide: `tasks` alone, a partial index on the ready ones;
- ready: a narrow table of what is ready beside `tasks`, whose own indexes then never change;
- ready + claims: another for what is claimed, so that a worker's claims can be found (what we use);
- ready + early runs: no `claims`, but the row of `runs` written at the claim and updated at the end.

All write the fence, the event of each move and the history of each run, and count in the job's row.

Run: python -m tests.servers postgres -- python -m benchmarks.hot_table [--tasks 60000] [--rounds 5]
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from collections import Counter
from dataclasses import dataclass

import asyncpg

from benchmarks.floor import floor_rate
from benchmarks.setting import machine, postgres_dsn

TASKS = """id bigint primary key, job_id bigint not null, group_id bigint, name text not null, entrypoint text not null,
kwargs json not null, result json, status varchar(20) not null, epoch int not null default 0,
attempt int not null default 0, unmet int not null default 0, dependents int not null default 0,
priority int not null default 0,
reserved_for int not null default 0, worker_id bigint, error text, log_path text, run_after timestamptz,
created_at timestamptz not null default now(), claimed_at timestamptz, started_at timestamptz,
completed_at timestamptz"""

OTHERS = """drop table if exists tasks, ready, claims, events, runs, jobs cascade;
create table jobs(id bigint primary key, status varchar(20) not null, open_tasks int not null,
  done int not null default 0);
create table events(id bigserial primary key, job_id bigint not null, task_id bigint, epoch int,
  move varchar(20) not null, worker_id bigint, at timestamptz not null);
create index on events(job_id, id);
create table runs(task_id bigint not null, epoch int not null, worker_id bigint, claimed_at timestamptz,
  started_at timestamptz, ended_at timestamptz, outcome varchar(20), error text, log_path text,
  primary key (task_id, epoch)) with (fillfactor = 60);"""

INDEXES = "create index on tasks(job_id); create index on tasks(group_id) where group_id is not null;"
READY = """create table ready(reserved_for int, rank int, job_id bigint, task_id bigint,
  primary key (reserved_for, rank, job_id, task_id));"""
CLAIMS = "create table claims(worker_id bigint, task_id bigint, epoch int, primary key (worker_id, task_id));"

PICK_WIDE = """select id from tasks where ready and reserved_for = 0 order by reserved_for, priority, job_id, id
  limit 100 for no key update skip locked"""
PICK_READY = """delete from ready where ctid = any(array(select ctid from ready where reserved_for = 0
  order by reserved_for, rank, job_id, task_id limit 100 for update skip locked)) returning task_id as id"""
CLAIM = """with picked as materialized ({pick}),
u as (update tasks t set status = 'claimed', epoch = epoch + 1, worker_id = $1, claimed_at = clock_timestamp() {also}
  from picked where t.id = picked.id and t.status = 'pending'
  returning t.id, t.job_id, t.epoch, t.entrypoint, t.kwargs, t.claimed_at),
e as (insert into events(job_id, task_id, epoch, move, worker_id, at)
  select job_id, id, epoch, 'claim', $1, claimed_at from u)
{more} select * from u"""
COMPLETE = """with d as (select * from unnest($2::bigint[], $3::int[], $4::json[]) x(id, epoch, result)),
u as (update tasks t set status = 'completed', result = d.result, completed_at = clock_timestamp(),
    started_at = coalesce(started_at, claimed_at)
  from d where t.id = d.id and t.epoch = d.epoch and t.worker_id = $1 and t.status in ('claimed', 'running')
  returning t.id, t.job_id, t.epoch, t.claimed_at, t.started_at, t.completed_at),
{history}
e as (insert into events(job_id, task_id, epoch, move, worker_id, at)
  select job_id, id, epoch, 'complete', $1, completed_at from u)
select job_id from u"""
LATE_RUNS = """r as (insert into runs(task_id, epoch, worker_id, claimed_at, started_at, ended_at, outcome)
  select id, epoch, $1, claimed_at, started_at, completed_at, 'completed' from u),"""
EARLY_RUNS = """r as (update runs set started_at = u.started_at, ended_at = u.completed_at, outcome = 'completed' from u
  where runs.task_id = u.id and runs.epoch = u.epoch),"""
FREE = "f as (delete from claims using u where claims.worker_id = $1 and claims.task_id = u.id),"
COUNT = "update jobs set open_tasks = open_tasks - $2, done = done + $2 where id = $1"


@dataclass(frozen=True)
class Layout:
    """Tables, and the two statements that they need."""

    name: str
    tables: str
    queue: str
    claim: str
    complete: str


def layouts() -> list[Layout]:
    plain = f"create table tasks({TASKS}) with (fillfactor = 50); {INDEXES} {READY}"
    fill = "insert into ready select 0, 0, 1, id from tasks"
    hold = ", h as (insert into claims select $1, id, epoch from u)"
    early = ", h as (insert into runs(task_id, epoch, worker_id, claimed_at) select id, epoch, $1, claimed_at from u)"
    from_ready = CLAIM.format(pick=PICK_READY, also="", more="")
    return [
        Layout(
            "wide",
            f"create table tasks({TASKS}, ready boolean not null default true) with (fillfactor = 70); {INDEXES}"
            " create index on tasks(reserved_for, priority, job_id, id) where ready;",
            "select 1",
            CLAIM.format(pick=PICK_WIDE, also=", ready = false", more=""),
            COMPLETE.format(history=LATE_RUNS),
        ),
        Layout("ready", plain, fill, from_ready, COMPLETE.format(history=LATE_RUNS)),
        Layout(
            "ready + claims",
            plain + CLAIMS,
            fill,
            CLAIM.format(pick=PICK_READY, also="", more=hold),
            COMPLETE.format(history=FREE + LATE_RUNS),
        ),
        Layout(
            "ready + early runs",
            plain + "create index on runs(worker_id) where ended_at is null;",
            fill,
            CLAIM.format(pick=PICK_READY, also="", more=early),
            COMPLETE.format(history=EARLY_RUNS),
        ),
    ]


async def rate(layout: Layout, count: int) -> float:
    """Tasks a second: claim 100, complete 100, pipelined over two connections, as the floor does."""
    claimer, completer = await asyncpg.connect(postgres_dsn()), await asyncpg.connect(postgres_dsn())
    await claimer.execute(OTHERS + layout.tables)
    await claimer.execute("insert into jobs values (1, 'running', $1)", count)
    await claimer.execute(
        """insert into tasks(id, job_id, name, entrypoint, kwargs, status)
        select i, 1, 'noop', 'myapp.noop', '{"x": 1}', 'pending' from generate_series(1, $1::int) i""",
        count,
    )
    await claimer.execute(layout.queue)

    async def complete(rows: list[asyncpg.Record]) -> None:
        async with completer.transaction():
            ids, epochs = [row["id"] for row in rows], [row["epoch"] for row in rows]
            done = await completer.fetch(layout.complete, 7, ids, epochs, ["null"] * len(rows))
            for job_id, ended in Counter(row["job_id"] for row in done).items():
                await completer.execute(COUNT, job_id, ended)

    started, pending = time.perf_counter(), None
    while rows := await claimer.fetch(layout.claim, 7):
        if pending:
            await pending
        pending = asyncio.ensure_future(complete(rows))
    if pending:
        await pending
    seconds = time.perf_counter() - started
    left = await claimer.fetchval("select open_tasks from jobs")
    assert left == 0, f"{layout.name}: {left} tasks were not completed"
    await claimer.close()
    await completer.close()
    return count / seconds


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=60_000)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    print(machine())
    floors: list[float] = []
    rates: dict[str, list[float]] = {layout.name: [] for layout in layouts()}
    for _ in range(given.rounds):
        floors.append(await floor_rate(postgres_dsn(), given.tasks))
        for layout in layouts():
            rates[layout.name].append(await rate(layout, given.tasks))
    floor = statistics.median(floors)
    print(f"floor {floor:,.0f} tasks a second, medians of {given.rounds} interleaved rounds of {given.tasks:,}")
    for name, found in rates.items():
        print(f"{name:20} {statistics.median(found):>8,.0f}/s  {statistics.median(found) / floor:.2f}")


if __name__ == "__main__":
    asyncio.run(main())
