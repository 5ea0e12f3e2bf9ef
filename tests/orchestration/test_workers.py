"""Workers by hand: register, keep alive, claim, list, end."""

from __future__ import annotations

import os
import socket
from typing import Any

import pytest

from aaiclick.errors import Conflict, InputError
from aaiclick.orchestration import (
    WorkerStatus,
    claim_next_task,
    count_live_workers,
    deregister_worker,
    get_job,
    get_task,
    list_workers,
    register_worker,
    worker_heartbeat,
)
from tests.orchestration import sample_flows as flows
from tests.support.front_door import local, state

__all__ = ["local", "state"]


async def test_a_worker_is_this_process_unless_told_otherwise(state: str) -> None:
    mine, other = await register_worker(), await register_worker(hostname="worker-01", pid=12345, name="night")
    assert (mine.hostname, mine.pid, mine.name) == (socket.gethostname(), os.getpid(), None)
    assert (other.hostname, other.pid, other.name) == ("worker-01", 12345, "night")
    assert mine.id != other.id
    assert [worker.id for worker in await list_workers()] == [other.id, mine.id]
    assert [worker.id for worker in await list_workers(limit=1)] == [other.id]
    assert [worker.id for worker in await list_workers(before=other.id)] == [mine.id]
    assert other.expires_at > other.last_heartbeat


async def test_a_heartbeat_renews_a_session_until_it_is_over(state: str) -> None:
    worker = await register_worker()
    assert await worker_heartbeat(worker.id) is True
    (renewed,) = await list_workers(status="active")
    assert renewed.expires_at > worker.expires_at
    assert await deregister_worker(worker.id) is True
    assert await worker_heartbeat(worker.id) is False
    assert await deregister_worker(worker.id) is False
    assert list(await list_workers(status=WorkerStatus.ACTIVE)) == []
    assert [one.status for one in await list_workers("STOPPED")] == ["stopped"]


async def test_a_worker_that_no_one_knows_has_no_session(state: str) -> None:
    assert await worker_heartbeat(5) is False
    assert await deregister_worker(5) is False


@pytest.mark.parametrize(
    "facts",
    [
        *({"hostname": host} for host in ("", "a\0b", "a\nb", "\ud800", "x" * 256, 5, b"host")),
        *({"pid": pid} for pid in (0, -1, 2**31, 2**63, "12", 1.5, True)),
        *({"name": name} for name in ("", "a\0b", "\x1b[31m", "x" * 201, 5)),
    ],
    ids=repr,
)
async def test_facts_that_cannot_be_stored_are_refused_the_same_everywhere(state: str, facts: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(facts))):
        await register_worker(**facts)
    assert list(await list_workers()) == []


@pytest.mark.parametrize("wrong", [0, -1, 2**63, "host:1:2", 1.0, True, None], ids=repr)
async def test_an_id_that_is_none_is_refused(local: object, wrong: Any) -> None:
    for ask in (worker_heartbeat, deregister_worker, claim_next_task):
        with pytest.raises(InputError, match="worker id"):
            await ask(wrong)


async def test_a_status_that_does_not_exist_is_refused(local: object) -> None:
    with pytest.raises(InputError, match=r"Did you mean active\?"):
        await list_workers(status="activ")


async def test_a_worker_claims_one_task_after_the_other(state: str) -> None:
    made = await flows.fan.submit(2)
    worker = await register_worker()
    claims = [await claim_next_task(worker.id) for _ in range(3)]
    assert [claim and claim.name for claim in claims] == ["add", "add", None]
    assert claims[0] is not None
    task = await get_task(claims[0].task_id)
    assert task is not None
    assert (task.status, task.worker_id, task.epoch) == ("claimed", worker.id, claims[0].epoch)
    assert (claims[0].id, claims[0].kwargs, claims[0].run_epoch) == (task.id, task.kwargs, task.run_epoch)
    job = await get_job(made.id)
    assert job is not None
    assert job.status == "running"


async def test_without_a_session_nothing_is_claimed(state: str) -> None:
    made = await flows.single.submit(1)
    over = await register_worker()
    await deregister_worker(over.id)
    for worker_id in (5, over.id):
        with pytest.raises(Conflict, match=r"register_worker\(\)"):
            await claim_next_task(worker_id)
    task = await get_task(made.tasks[0].id)
    assert task is not None
    assert task.status == "pending"


async def test_workers_whose_session_is_not_over_are_counted(state: str) -> None:
    assert await count_live_workers() == 0
    worker, _ = await register_worker(), await register_worker()
    assert await count_live_workers() == 2
    await deregister_worker(worker.id)
    assert await count_live_workers() == 1
