"""One task that makes many: how long until all of them are there, and what memory that takes.

A worker claims one task; its body makes the children and returns them, and one task waits for all of them. Timed by the
database, from the claim to the completion: the body, the way from a child process, and the one transaction. The worker
takes no other task (`--max-tasks 1`), so that its highest memory is that of the expansion, shown above that of a worker
whose task made one child.

Run: python -m tests.servers postgres -- python -m benchmarks.expansions [--counts 1000 10000 100000]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
from tempfile import TemporaryDirectory

from aaiclick.config import reset_settings
from aaiclick.orchestration import Task, create_job, get_task, orch_context
from benchmarks.latency import start_worker
from benchmarks.setting import fresh_database, machine


async def expand(url: str, root: str, executor: str, count: int) -> tuple[float, float]:
    """Seconds, and megabytes of the worker with its children at their highest."""
    parent = Task("benchmarks.bodies.expands", {"count": count})
    after = Task("benchmarks.bodies.noop", {"x": parent})
    await create_job("expansion", tasks=[parent, after])
    worker = start_worker(url, root, "--executor", executor, "--concurrency", "1", "--max-tasks", "1")
    _, status, usage = await asyncio.to_thread(os.wait4, worker.pid, 0)
    worker.returncode = os.waitstatus_to_exitcode(status)
    assert worker.returncode == 0
    ended = await get_task(parent.id)
    assert ended is not None
    assert ended.status == "completed", ended.error
    assert ended.claimed_at is not None
    assert ended.completed_at is not None
    return (ended.completed_at - ended.claimed_at).total_seconds(), _megabytes(usage)


def _megabytes(usage: resource.struct_rusage) -> float:
    return usage.ru_maxrss / 1e3


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--counts", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    given = parser.parse_args()
    print(machine())
    for kind in ("postgres", "sqlite"):
        for executor in ("inline", "process"):
            base = 0.0
            for count in (1, *given.counts):
                async with fresh_database(kind) as url:
                    with TemporaryDirectory() as root:
                        os.environ |= {"AAICLICK_SQL_URL": url, "AAICLICK_LOCAL_ROOT": root}
                        reset_settings()
                        async with orch_context():
                            seconds, memory = await expand(url, root, executor, count)
                if count == 1:
                    base = memory
                    continue
                print(
                    f"{kind} {executor}: {count:>8,} children in {seconds:.2f} s, {1e6 * seconds / count:.0f} µs each,"
                    f" {memory - base:+,.0f} MB",
                    flush=True,
                )


if __name__ == "__main__":
    asyncio.run(main())
