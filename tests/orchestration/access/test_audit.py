"""Who changed what is written down before it happens, and what became of it afterwards."""

from __future__ import annotations

import asyncio

import pytest

from aaiclick.errors import Conflict
from aaiclick.orchestration.access.audit import audited, list_audit
from aaiclick.orchestration.access.tokens import create_token
from aaiclick.orchestration.models.token import Token
from tests.support.front_door import local, state

__all__ = ["local", "state"]


async def actor() -> Token:
    return (await create_token("night shift", "operator")).token


async def test_an_entry_is_there_before_the_change(state: str) -> None:
    who = await actor()
    async with audited(who, "submit", "job nightly") as change:
        (during, _) = await list_audit()
        assert (during.actor_id, during.actor, during.verb, during.outcome) == (who.id, "night shift", "submit", None)
        change.target = "job 123"
    (after, _) = await list_audit()
    assert (after.id, after.target, after.outcome) == (during.id, "job 123", "done")


async def test_a_refusal_is_told_without_secrets(state: str) -> None:
    cause = "postgresql://u:hush@h/db says no"
    with pytest.raises(Conflict):
        async with audited(await actor(), "cancel", "job 1"):
            raise Conflict(what="Job 1", verb="cancelled", cause=cause, hint="")
    (entry, _) = await list_audit()
    assert entry.outcome is not None
    assert entry.outcome.startswith("refused: Conflict: Job 1")
    assert "hush" not in entry.outcome


async def test_a_fault_is_told_by_its_kind_only(local: None) -> None:
    with pytest.raises(ZeroDivisionError):
        async with audited(await actor(), "cancel", "job 1"):
            _ = 1 // 0
    assert (await list_audit())[0].outcome == "failed: ZeroDivisionError"


async def test_what_is_cut_off_is_not_told_as_done(state: str) -> None:
    who, begun = await actor(), asyncio.Event()

    async def change() -> None:
        async with audited(who, "clear", "task 1"):
            begun.set()
            await asyncio.Event().wait()

    changing = asyncio.create_task(change())
    await begun.wait()
    changing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await changing
    assert (await list_audit())[0].outcome == "cut off: the change may have happened or not"


@pytest.mark.parametrize("ending", [KeyboardInterrupt, SystemExit])
async def test_what_is_interrupted_is_not_told_as_done(state: str, ending: type[BaseException]) -> None:
    with pytest.raises(ending):
        async with audited(await actor(), "clear", "task 1"):
            raise ending
    assert (await list_audit())[0].outcome == "cut off: the change may have happened or not"


async def test_entries_come_in_pages(local: None) -> None:
    who = await actor()
    for number in range(3):
        async with audited(who, "cancel", f"job {number}"):
            pass
    first = await list_audit(limit=2)
    rest = await list_audit(before=first[-1].id, limit=10)
    assert [entry.target for entry in (*first, *rest)][:3] == ["job 2", "job 1", "job 0"]
