"""Who changed what: nothing is changed from outside before it is written down who asked for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aaiclick.errors import AaiclickError
from aaiclick.orchestration.connections import connected
from aaiclick.orchestration.models.token import AuditEntry, Token
from aaiclick.orchestration.rules.validation import check_id, check_paging, mask_secrets
from aaiclick.orchestration.store.access import audit as store
from aaiclick.orchestration.store.session import Session

TARGET_LENGTH_MAX = 250
OUTCOME_LENGTH_MAX = 1000
DONE = "done"
REFUSED = "refused"
CUT_OFF = "cut off: it may have happened or not"


@dataclass(slots=True)
class Change:
    """A change under way; whoever makes it may say what it was about, and how it went."""

    target: str
    outcome: str = DONE


@asynccontextmanager
async def audited(actor: Token, verb: str, target: str) -> AsyncIterator[Change]:
    """Write down who is about to change what, and afterwards what became of it.

    These are commits of their own. An entry without an outcome was cut off: it may have happened or not.
    """
    change = Change(target[:TARGET_LENGTH_MAX])
    async with connected() as database:
        entry = await database.transact(
            lambda session: store.add_entry(
                session, actor_id=actor.id, actor=actor.name, verb=verb, target=target[:TARGET_LENGTH_MAX]
            )
        )
        try:
            yield change
        except AaiclickError as error:
            change.outcome = f"refused: {type(error).__name__}: {mask_secrets(str(error))}"
            raise
        except Exception as error:
            change.outcome = f"failed: {type(error).__name__}"
            raise
        except asyncio.CancelledError:
            change.outcome = CUT_OFF
            raise
        finally:
            outcome, final = change.outcome[:OUTCOME_LENGTH_MAX], change.target[:TARGET_LENGTH_MAX]
            await database.transact(lambda session: store.end_entry(session, entry, outcome, final))


async def list_audit(before: int | None = None, limit: int | None = None) -> list[AuditEntry]:
    """What was changed from outside, the newest first; `before` is the id of the last entry of the page before."""
    below = None if before is None else check_id(before, "before")
    count, _ = check_paging(limit)
    async with connected() as database:
        return await database.read(lambda session: store.list_entries(session, below, count))


async def add_count(actor_id: int | None, actor: str, target: str, outcome: str) -> int:
    """Begin an entry that counts how often somebody was refused; gives its id."""

    async def work(session: Session) -> int:
        return await store.add_entry(
            session, actor_id=actor_id, actor=actor, verb=REFUSED, target=target, outcome=outcome
        )

    async with connected() as database:
        return await database.transact(work)


async def end_count(entry_id: int, outcome: str) -> None:
    """How often it was by now."""
    async with connected() as database:
        await database.transact(lambda session: store.end_entry(session, entry_id, outcome))
