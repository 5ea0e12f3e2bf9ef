"""The audit log: for each change requested from outside, an entry is committed before the change is made."""

from __future__ import annotations

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
CUT_OFF = "cut off: the change may have happened or not"


@dataclass(slots=True)
class Change:
    """The audit entry of a change in progress. Code inside `audited` may replace its target and its outcome."""

    target: str
    outcome: str = DONE


@asynccontextmanager
async def audited(actor: Token, verb: str, target: str) -> AsyncIterator[Change]:
    """Insert an audit entry before the block runs, and store its outcome afterwards.

    Both are committed in transactions of their own. An entry without an outcome is in progress, or its process died:
    the change may have been made or not.
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
        except BaseException:  # cancelled, interrupted, or the process is told to exit
            change.outcome = CUT_OFF
            raise
        finally:
            outcome, final = change.outcome[:OUTCOME_LENGTH_MAX], change.target[:TARGET_LENGTH_MAX]
            await database.transact(lambda session: store.end_entry(session, entry, outcome, final))


async def list_audit(before: int | None = None, limit: int | None = None) -> list[AuditEntry]:
    """Return audit entries, the newest first; `before` is the id of the last entry of the previous page."""
    below = None if before is None else check_id(before, "before")
    count, _ = check_paging(limit)
    async with connected() as database:
        return await database.read(lambda session: store.list_entries(session, below, count))


async def add_count(actor_id: int | None, actor: str, target: str, outcome: str) -> int:
    """Insert an entry that counts how often an actor was refused, and return its id for `end_count`."""

    async def work(session: Session) -> int:
        return await store.add_entry(
            session, actor_id=actor_id, actor=actor, verb=REFUSED, target=target, outcome=outcome
        )

    async with connected() as database:
        return await database.transact(work)


async def end_count(entry_id: int, outcome: str) -> None:
    """Replace the outcome of an entry made by `add_count`: how often the actor was refused by now."""
    async with connected() as database:
        await database.transact(lambda session: store.end_entry(session, entry_id, outcome))
