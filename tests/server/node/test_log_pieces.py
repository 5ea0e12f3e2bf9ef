"""Logs that nodes send: only those of their own runs, in pieces that may be repeated, and no longer than allowed."""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from aaiclick.config import reset_settings, settings
from aaiclick.errors import CoordinatorUnreachable, InputError, NotAllowed
from aaiclick.orchestration.coordinator.http import calls
from aaiclick.orchestration.coordinator.http.protocol import LOG_PIECE_BYTES_MAX, VERSION_HEADER, LogPiece, Written
from aaiclick.orchestration.execution.logs.log_reading import read_log
from aaiclick.orchestration.execution.logs.log_targets import ServerTarget
from aaiclick.orchestration.execution.logs.spool import Spool
from aaiclick.orchestration.models import Claim
from aaiclick.orchestration.rules.roles import Role
from aaiclick.orchestration.tasks import clear_task
from aaiclick.server.node import log_pieces
from tests.server.node.test_rights import node, submitted
from tests.support.front_door import local
from tests.support.node_server import NodeServer, node_server
from tests.support.orchestra import done

__all__ = ["local"]

sqlite = pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)


@pytest.fixture
async def server(local: Path, migrated_sql_url: str) -> AsyncIterator[NodeServer]:
    async with node_server(migrated_sql_url, *Role) as opened:
        yield opened


async def claimed(server: NodeServer) -> tuple[ServerTarget, int, Claim]:
    """The way of a node to the server, a worker of it, and a claim."""
    coordinator, worker = await node(server, "mine")
    await submitted("a")
    (claim,) = await coordinator.claim(worker, limit=1)
    return ServerTarget(coordinator.calls), worker, claim


def piece(worker: int, claim: Claim, data: bytes, offset: int = 0, **more: Any) -> LogPiece:
    facts: dict[str, Any] = {"worker": worker, "task_id": claim.task_id, "epoch": claim.epoch}
    return LogPiece(**facts | {"offset": offset, "data": data} | more)


def text_of(claim: Claim, epoch: int | None = None) -> tuple[bytes, bool]:
    part = read_log(claim.task_id, epoch)
    return (b"", False) if part is None else (part.data, part.complete)


async def test_a_node_sends_the_log_of_its_run(server: NodeServer, tmp_path: Path) -> None:
    target, worker, claim = await claimed(server)
    shipment = Spool(tmp_path / "spool", 1000).begin(claim.task_id, claim.epoch, worker)
    text = b"".join(b"line %d\n" % number for number in range(1000))  # compressed on its way
    assert await target.write(shipment, 0, text[:5000], last=False) == 5000
    assert text_of(claim) == (text[:5000], False)
    for _ in range(2):
        assert await target.write(shipment, 5000, text[5000:], last=True) == len(text)
    assert text_of(claim) == (text, True)
    assert target.place_of(shipment) == shipment.path
    target.close()


@sqlite
async def test_only_its_own_runs_and_epochs(server: NodeServer) -> None:
    target, worker, claim = await claimed(server)
    thief, its = await node(server, "thief")
    for asked, why in (
        (piece(its, claim, b"x"), "never ran"),
        (piece(worker, claim, b"x"), "not of the node"),
    ):
        with pytest.raises(NotAllowed, match=why):
            await thief.calls.ask("log", asked, Written)
    for strange in (piece(worker, claim, b"x", epoch=claim.epoch + 1), piece(worker, claim, b"x", task_id=7)):
        with pytest.raises(NotAllowed, match="never ran"):
            await target.calls.ask("log", strange, Written)
    assert read_log(claim.task_id) is None
    thief.close()
    target.close()


@sqlite
async def test_what_comes_late_is_added_to_its_own_epoch(server: NodeServer) -> None:
    """The claim was given up, and another has begun and logged."""
    target, worker, claim = await claimed(server)
    assert await target.calls.ask("log", piece(worker, claim, b"before, "), Written) == Written(8)
    coordinator, mine = await node(server, "another")
    server.app.state.node.desk.rights._worker_of.clear()  # as after a restart of the server
    await clear_task(claim.task_id)
    (again,) = await coordinator.claim(mine, limit=1)
    assert again.epoch > claim.epoch
    await coordinator.calls.ask("log", piece(mine, again, b"new", last=True), Written)
    await target.calls.ask("log", piece(worker, claim, b"late", 8, last=True), Written)
    assert text_of(claim) == (b"new", True)
    assert text_of(claim, claim.epoch) == (b"before, late", True)
    await coordinator.report(mine, [done(again)])
    coordinator.close()
    target.close()


@sqlite
async def test_a_log_is_no_longer_than_allowed(server: NodeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_pieces, "ROOM_BYTES", 0)
    monkeypatch.setenv("AAICLICK_LOG_BYTES_MAX", "1000")
    reset_settings()
    target, worker, claim = await claimed(server)
    await target.calls.ask("log", piece(worker, claim, b"x" * 1000), Written)
    with pytest.raises(InputError, match="AAICLICK_LOG_BYTES_MAX"):
        await target.calls.ask("log", piece(worker, claim, b"x", 1000), Written)
    note = piece(worker, claim, b"the rest is missing", 1000, last=True)
    assert await target.calls.ask("log", note, Written) == Written(1019)
    target.close()


@sqlite
async def test_a_store_that_cannot_be_written_is_tried_again_later(
    server: NodeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "_pause_s", lambda _: 0)
    target, worker, claim = await claimed(server)
    settings().log_dir.parent.mkdir(exist_ok=True)
    settings().log_dir.write_text("no directory")
    with pytest.raises(CoordinatorUnreachable, match="Cannot reach the logs"):
        await target.calls.ask("log", piece(worker, claim, b"x"), Written)
    settings().log_dir.unlink()
    assert await target.calls.ask("log", piece(worker, claim, b"x"), Written) == Written(1)
    target.close()


async def put(server: NodeServer, path: str, role: Role = Role.WORKER, **more: Any) -> httpx.Response:
    token = {"authorization": f"Bearer {server.tokens[role]}", VERSION_HEADER: "1"}
    async with httpx.AsyncClient(base_url=server.url) as client:
        return await client.request(
            more.pop("method", "PUT"), f"/api/v1/node/{path}", headers=token | more.pop("headers", {}), **more
        )


@sqlite
async def test_calls_of_another_form_are_refused(server: NodeServer) -> None:
    good = "runs/5.1/log?worker=1&offset=0"
    big = b"x" * (LOG_PIECE_BYTES_MAX + 1)
    for path, status, more in (
        ("runs/5.1/log?worker=1", 422, {}),
        ("runs/5.1/log?worker=1&offset=-1", 422, {}),
        ("runs/5.1/log?worker=x&offset=1", 422, {}),
        ("runs/5.x/log?worker=1&offset=0", 404, {}),
        (good, 405, {"method": "POST"}),
        ("claim", 405, {}),
        (good, 413, {"content": big}),
        (good, 413, {"content": gzip.compress(big), "headers": {"content-encoding": "gzip"}}),
    ):
        answer = await put(server, path, **more)
        assert answer.status_code == status, (path, answer.text)


@sqlite
async def test_only_workers_send_logs(server: NodeServer) -> None:
    for role in set(Role) - {Role.WORKER}:
        assert (await put(server, "runs/5.1/log?worker=1&offset=0", role)).status_code == 403, role
