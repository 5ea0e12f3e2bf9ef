"""What the token of a node may do with workers, runs and files that are not its own: nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from sqlalchemy import select

from aaiclick.config import settings
from aaiclick.errors import ClaimLost, Conflict, InputError, NotAllowed
from aaiclick.orchestration.access.tokens import create_token
from aaiclick.orchestration.connections import connected, coordinated
from aaiclick.orchestration.coordinator.http.client import HttpCoordinator
from aaiclick.orchestration.coordinator.http.front_door import HttpFrontDoor
from aaiclick.orchestration.coordinator.http.protocol import SentJob, Submit
from aaiclick.orchestration.coordinator.ownership import node_of, runs_of
from aaiclick.orchestration.factories import new_job
from aaiclick.orchestration.gathering import gather
from aaiclick.orchestration.jobs import get_job
from aaiclick.orchestration.models import CacheAnswer, CacheKey, Claim, Job
from aaiclick.orchestration.models.sent_submission import SentSubmission
from aaiclick.orchestration.models.submission import Submission
from aaiclick.orchestration.rules.values.run_tables import run_table
from aaiclick.orchestration.store.access.callbacks import receive_callback
from aaiclick.orchestration.store.tables import table_run_refs
from aaiclick.orchestration.tasks import get_task
from tests.support.front_door import local
from tests.support.node_server import NodeServer, node_server
from tests.support.orchestra import done, make

__all__ = ["local"]

FACTS: dict[str, Any] = {"hostname": "here", "pid": 1}
sqlite = pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)


@pytest.fixture
async def server(migrated_sql_url: str) -> AsyncIterator[NodeServer]:
    async with node_server(migrated_sql_url) as opened:
        yield opened


async def node(server: NodeServer, name: str) -> tuple[HttpCoordinator, int]:
    """A coordinator with the token of a node, and a worker of this node."""
    coordinator = server.coordinator(token=(await create_token(name, "worker")).text)
    await coordinator.grant_ids()
    return coordinator, (await coordinator.register(**FACTS)).id


async def submitted(*names: str) -> Job:
    job = new_job("job")
    graph = gather(job.id, [make(name) for name in names])
    graph.new_job = job
    async with coordinated() as there:
        return await there.submit(graph)


Deed = Callable[[HttpCoordinator, int, Claim], Awaitable[object]]
DEEDS: dict[str, Deed] = {
    "register": lambda thief, worker, _: thief.register(**FACTS, worker_id=worker),
    "beat": lambda thief, worker, _: thief.beat(worker, held=[]),
    "deregister": lambda thief, worker, _: thief.deregister(worker),
    "claim": lambda thief, worker, _: thief.claim(worker, limit=1),
    "claim again": lambda thief, worker, _: thief.claim(worker, limit=1, call=1, again=True),
    "claim held": lambda thief, worker, _: thief.claim(worker, limit=1, wait_s=20),
    "report": lambda thief, worker, claim: thief.report(worker, [done(claim)]),
    "release": lambda thief, worker, claim: thief.release(worker, [claim]),
    "hold": lambda thief, _, claim: thief.hold(claim, ["t"]),
    "recall": lambda thief, _, claim: thief.recall(claim, CacheKey("d" * 64, "a.b", "i" * 64)),
    "callback": lambda thief, _, claim: thief.callback(claim, "d" * 64),
    "let_go": lambda thief, worker, claim: thief.let_go(worker, [(claim.task_id, claim.epoch)]),
}


@sqlite
async def test_a_node_does_nothing_with_the_workers_of_another(server: NodeServer) -> None:
    (owner, mine), (thief, _) = await node(server, "mine"), await node(server, "thief")
    await submitted("a")
    (claim,) = await owner.claim(mine, limit=1, call=1)
    for deed in DEEDS.values():
        with pytest.raises(NotAllowed, match="not of the node"):
            await deed(thief, mine, claim)
    assert (await owner.report(mine, [done(claim)])).accepted
    owner.close()
    thief.close()


async def test_a_node_says_nothing_of_runs_of_others_in_the_name_of_its_own(server: NodeServer) -> None:
    """A late report frees what its run held: one for the run of another would free what that needs."""
    (owner, mine), (thief, its) = await node(server, "mine"), await node(server, "thief")
    await submitted("a")
    (claim,) = await owner.claim(mine, limit=1)
    table = run_table(claim.task_id, claim.epoch, 1)
    await owner.hold(claim, [table])
    said = replace(done(claim), holds=True, made=())
    assert not (await thief.report(its, [said])).accepted
    await thief.let_go(its, [(claim.task_id, claim.epoch)])
    assert await thief.release(its, [claim]) == set()
    async with connected() as database:
        assert await runs_of(database, its, [(claim.task_id, claim.epoch)]) == set()
        assert await runs_of(database, mine, [(claim.task_id, claim.epoch)]) == {(claim.task_id, claim.epoch)}
        assert await database.read(_references) == [(table, False)]
    assert (await owner.report(mine, [said])).accepted
    for each in (owner, thief):
        each.close()


async def test_a_node_learns_and_completes_nothing_of_runs_of_others_in_the_name_of_its_own(server: NodeServer) -> None:
    """What is remembered or called back is told to the worker of the run alone."""
    (owner, mine), (thief, its) = await node(server, "mine"), await node(server, "thief")
    key = CacheKey("d" * 64, "a.b", "i" * 64)
    await submitted("a")
    await submitted("a")
    first, second = await owner.claim(mine, limit=2)
    assert await owner.recall(first, key) == CacheAnswer(remembers=True)
    await owner.report(mine, [replace(done(first, '"secret"'), remember=key)])
    assert await owner.callback(second, "e" * 64) is None
    async with connected() as database:
        await database.transact(lambda session: receive_callback(session, "e" * 64, "said"))
    stolen = replace(second, worker_id=its)
    for ask in (thief.recall(stolen, key), thief.callback(stolen, ""), thief.callback(stolen, "f" * 64)):
        with pytest.raises(ClaimLost):
            await ask
    with pytest.raises(ClaimLost):
        await thief.hold(stolen, [run_table(second.task_id, second.epoch, 1)])
    assert await owner.callback(second, "") == "said"
    assert await owner.recall(second, key) == CacheAnswer(hit=True, result_json='"secret"')
    for again in (replace(first, worker_id=its), stolen):  # nor once they have ended
        with pytest.raises(ClaimLost):
            await thief.recall(again, key)
    for each in (owner, thief):
        each.close()


async def _references(session: Any) -> list[tuple[str, bool]]:
    found = await session.rows(select(table_run_refs.c.table_name, table_run_refs.c.freed))
    return [(row.table_name, bool(row.freed)) for row in found]


@sqlite
async def test_late_reports_of_its_own_are_taken_after_a_restart_of_the_server(migrated_sql_url: str) -> None:
    async with node_server(migrated_sql_url) as server:
        owner, mine = await node(server, "mine")
        await submitted("a", "b")
        first, second = await owner.claim(mine, limit=2)
        await owner.report(mine, [done(first)])
        server.app.state.node.desk.rights._worker_of.clear()  # as after a restart
        assert len((await owner.report(mine, [done(first), done(second)])).accepted) == 2
        owner.close()


@sqlite
async def test_reserved_tasks_are_not_for_nodes(server: NodeServer) -> None:
    worker, mine = await node(server, "mine")
    with pytest.raises(NotAllowed, match="reserved"):
        await worker.claim(mine, limit=1, reserved_for=77)
    worker.close()


@sqlite
async def test_a_node_is_called_as_its_token_says_and_is_of_its_pool(server: NodeServer) -> None:
    made = await create_token("t", "worker", node="named", pool="p")
    worker = server.coordinator(token=made.text)
    await worker.grant_ids()
    registered = await worker.register(**FACTS)
    assert registered.node_id == made.token.node_id
    async with connected() as database:
        assert await node_of(database, registered.id) == made.token.node_id
        assert await node_of(database, 1) is None
    worker.close()


@sqlite
async def test_the_server_says_where_logs_are(server: NodeServer) -> None:
    """A path that a node says is one of its own machine; here it may be that of another file."""
    worker, mine = await node(server, "mine")
    await submitted("secret", "log")
    first, second = await worker.claim(mine, limit=2)
    await worker.report(mine, [replace(done(first), log_path="/etc/passwd"), replace(done(second), log_path=None)])
    found = [await get_task(claim.task_id) for claim in (first, second)]
    log = str(settings().log_dir / f"{first.task_id}.1.log")
    assert [None if task is None else task.log_path for task in found] == [log, None]
    worker.close()


# ---------------------------------------------------------------- bodies that call the front door


def acting(server: NodeServer, token: str, run: tuple[int, int, int] | None) -> HttpFrontDoor:
    """The front door of a body: with the token of its node, in the name of its run."""
    door = server.front_door(token=token)
    ask = door.calls.ask

    async def asked(verb: str, said: Any, kind: Any, **limits: Any) -> Any:
        return await ask(verb, msgspec.structs.replace(said, run=run), kind, **limits)

    door.calls.ask = asked  # type: ignore[method-assign, assignment]
    return door


def graph(name: str, job_id: int | None = None) -> Submission:
    job = new_job("job")
    made = gather(job_id or job.id, [make(name)])
    made.new_job = None if job_id else job
    return made


async def test_a_body_acts_in_the_name_of_its_live_run_alone(server: NodeServer) -> None:
    made = await create_token("mine", "worker")
    worker = server.coordinator(token=made.text)
    await worker.grant_ids()
    mine = (await worker.register(**FACTS)).id
    own, other = await submitted("a"), await submitted("b")
    (claim,) = await worker.claim(mine, limit=1)
    run = (mine, claim.task_id, claim.epoch)
    body = acting(server, made.text, run)
    assert (await body.submit(graph("more", own.id))).total_tasks == 2
    new = await body.submit(graph("new"))
    assert (await body.submit(graph("more of it", new.id))).total_tasks == 2
    assert await body.job(new.id)
    for asked in (body.submit(graph("more", other.id)), body.job(other.id), body.result_of(other.id)):
        with pytest.raises(NotAllowed, match="nor was it submitted on this node"):
            await asked
    for wrong in (None, (mine, claim.task_id, claim.epoch + 1), (mine, claim.task_id + 1, claim.epoch), (1, 1, 1)):
        with pytest.raises(NotAllowed, match=r"name of a run|has ended"):
            await acting(server, made.text, wrong).submit(graph("no"))
    await worker.report(mine, [done(claim)])
    with pytest.raises(NotAllowed, match="has ended"):
        await body.job(own.id)
    thief = (await create_token("thief", "worker")).text
    with pytest.raises(NotAllowed, match="not of the node"):
        await acting(server, thief, run).job(own.id)


@sqlite
async def test_a_refused_submission_makes_nobody_the_owner_of_a_job(server: NodeServer) -> None:
    """Ids are made by those who submit: one may be that of a job of others."""
    made = await create_token("mine", "worker")
    worker = server.coordinator(token=made.text)
    await worker.grant_ids()
    mine = (await worker.register(**FACTS)).id
    await submitted("a")
    (claim,) = await worker.claim(mine, limit=1)
    body = acting(server, made.text, (mine, claim.task_id, claim.epoch))
    victim = await submitted("secret")
    claimed = graph("x")
    assert claimed.new_job is not None
    claimed.new_job.id = claimed.job_id = victim.id
    for again in (False, True):
        asked = Submit(graph=SentSubmission.of(claimed), again=again)
        with pytest.raises(Conflict):
            await body.calls.ask("submit", asked, SentJob)
    with pytest.raises(NotAllowed):
        await body.job(victim.id)


@sqlite
async def test_a_new_job_of_a_body_is_stored_under_its_own_id_alone(server: NodeServer) -> None:
    """Whether a body may add to a job is asked of stored jobs: tasks of a new one could go into a job of others."""
    made = await create_token("mine", "worker")
    worker = server.coordinator(token=made.text)
    await worker.grant_ids()
    mine = (await worker.register(**FACTS)).id
    await submitted("a")
    (claim,) = await worker.claim(mine, limit=1)
    body = acting(server, made.text, (mine, claim.task_id, claim.epoch))
    victim = await submitted("secret")
    forged = graph("x")
    forged.job_id = victim.id
    with pytest.raises(InputError, match="not the id of the new job"):
        await body.submit(forged)
    found = await get_job(victim.id)
    assert found is not None
    assert found.total_tasks == 1
    with pytest.raises(InputError, match="result"):
        await worker.report(mine, [done(claim, "{")])
    assert (await worker.report(mine, [done(claim)])).accepted


async def test_a_lost_answer_to_a_submission_of_a_body_is_found(server: NodeServer) -> None:
    made = await create_token("mine", "worker")
    worker = server.coordinator(token=made.text)
    await worker.grant_ids()
    mine = (await worker.register(**FACTS)).id
    await submitted("a")
    (claim,) = await worker.claim(mine, limit=1)
    body = acting(server, made.text, (mine, claim.task_id, claim.epoch))
    new = graph("x")
    first = await body.submit(new)
    again = await body.calls.ask("submit", Submit(graph=SentSubmission.of(new), again=True), SentJob)
    assert (again.id, again.total_tasks) == (first.id, 1)


@sqlite
async def test_a_node_is_given_tasks_of_the_lanes_that_it_meets_whatever_it_asks_for(server: NodeServer) -> None:
    made = await create_token("mine", "worker", pool="small")
    worker = server.coordinator(token=made.text)
    await worker.grant_ids()
    mine = (await worker.register(**FACTS)).id
    job = new_job("job")
    placed = gather(job.id, [make("elsewhere", placement="gpu == nvidia"), make("anywhere")])
    placed.new_job = job
    async with coordinated() as there:
        await there.submit(placed)
        lanes = list(there.database.lanes.needs)
    assert lanes
    assert await worker.claim(mine, limit=5, lanes=lanes) == []
    assert [claim.name for claim in await worker.claim(mine, limit=5, lanes=(*lanes, 0))] == ["anywhere"]
    assert await worker.claim(mine, limit=5, lanes=None) == []
    worker.close()
