"""The callers of a replica: their tokens are those of the coordinator, which is asked about each again and again.

While it cannot be asked, the tokens count that it has accepted before, until they expire. The replica's file has a
digest of each, not its text.
"""

from __future__ import annotations

import asyncio
import hashlib
from contextvars import ContextVar
from datetime import datetime, timedelta
from functools import partial

import msgspec

from aaiclick.clock import SYSTEM_CLOCK, Clock, utc_now
from aaiclick.errors import BackendUnreachable, CoordinatorAway, NotAuthenticated
from aaiclick.orchestration.access.tokens import MAKE_ONE, id_of
from aaiclick.orchestration.coordinator.http.protocol import Ask, Identity
from aaiclick.orchestration.models.token import Token
from aaiclick.orchestration.rules.roles import Role
from aaiclick.orchestration.store.database import Database
from aaiclick.orchestration.store.replicas.applying import note_caller, read_callers
from aaiclick.server.replicas.feeder import Calls
from aaiclick.server.replicas.progress import Progress

TRUSTED_S = 10.0
"""Seconds for which a token counts without a question to the coordinator: so long a revoked one may be used."""

ANSWER_S_MAX = 5.0
"""Seconds for which the coordinator is waited for, if it has accepted the token before."""

KNOWN_MAX = 1_000

asking_as: ContextVar[str] = ContextVar("aaiclick_asking_as", default="")
"""The token with which the coordinator is asked who that is."""


class Caller(msgspec.Struct):
    """What the coordinator has said of a token."""

    token_id: int
    role: Role
    expires_at: datetime | None
    asked_at: float | None = None
    """When it was asked, by the monotonic clock of this process; None before."""

    def token(self) -> Token:
        """Return it as a token; what a replica does not know of it is left out."""
        now = utc_now()
        return Token(self.token_id, f"token {self.token_id}", self.role, now, self.expires_at, None, None)


class AskedCallers:
    """The callers of one replica."""

    def __init__(self, database: Database, calls: Calls, progress: Progress, clock: Clock = SYSTEM_CLOCK) -> None:
        self._database, self._calls, self._progress, self._clock = database, calls, progress, clock
        self._known: dict[str, Caller] = {}
        self._texts: dict[int, str] = {}
        """The tokens that have asked this process, for streams that stay open."""
        self._asking: dict[str, asyncio.Task[Caller]] = {}

    async def load(self) -> None:
        """Read what is known from before."""
        for digest, text in (await self._database.read(read_callers)).items():
            self._known[digest] = msgspec.json.decode(text, type=Caller)

    async def authenticate(self, text: str) -> Token:
        """Return the token that has this text; raise NotAuthenticated, or CoordinatorAway if that is not known."""
        token_id = id_of(text)
        digest = hashlib.sha256(text.encode()).hexdigest()
        known = self._known.get(digest)
        if known is None or known.asked_at is None or self._clock.monotonic() - known.asked_at >= TRUSTED_S:
            known = await self._look(text, token_id, digest, known)
        if known.expires_at is not None and known.expires_at <= utc_now(self._clock):
            raise NotAuthenticated(cause="it has expired", hint=MAKE_ONE)
        self._texts[token_id] = text
        return known.token()

    async def still_counts(self, token_id: int) -> bool:
        """Return whether the token of a stream is still valid."""
        try:
            await self.authenticate(self._texts[token_id])
        except (KeyError, NotAuthenticated):
            return False
        return True

    async def _look(self, text: str, token_id: int, digest: str, known: Caller | None) -> Caller:
        """Ask the coordinator; once for all that come with the same token meanwhile."""
        if known is not None and self._progress.trouble:  # it is away: that would only take long
            return known
        if digest not in self._asking:
            self._asking[digest] = asyncio.create_task(self._ask(text, token_id, digest))
            self._asking[digest].add_done_callback(lambda _: self._asking.pop(digest, None))
        try:
            async with asyncio.timeout(ANSWER_S_MAX if known is not None else None):
                return await asyncio.shield(self._asking[digest])
        except (BackendUnreachable, TimeoutError) as error:
            if known is not None:
                return known
            raise away(self._progress, "What your token is", error) from error

    async def _ask(self, text: str, token_id: int, digest: str) -> Caller:
        asking_as.set(text)  # a task has context variables of its own
        try:
            found = await self._calls.ask("who", Ask(), Identity)
        except NotAuthenticated:
            if self._known.pop(digest, None) is not None:
                await self._database.transact(partial(note_caller, digest=digest, caller=None))
            raise
        ends = None if found.left_s is None else utc_now(self._clock) + timedelta(seconds=found.left_s)
        before = self._known.pop(digest, None)
        caller = self._known[digest] = Caller(token_id, Role(found.role), ends, self._clock.monotonic())
        if before is None:
            stored = msgspec.json.encode(msgspec.structs.replace(caller, asked_at=None)).decode()
            await self._database.transact(partial(note_caller, digest=digest, caller=stored))
            await self._forget_oldest()
        return caller

    async def _forget_oldest(self) -> None:
        while len(self._known) > KNOWN_MAX:
            digest = next(iter(self._known))
            self._texts.pop(self._known.pop(digest).token_id, None)
            await self._database.transact(partial(note_caller, digest=digest, caller=None))


def away(progress: Progress, what: str, error: BaseException) -> CoordinatorAway:
    """Return the error for what only the coordinator knows, which cannot be asked."""
    cause = getattr(error, "facts", {}).get("cause") or str(error) or "it does not answer in time"
    return CoordinatorAway(what=what, coordinator=progress.coordinator, cause=cause, age_s=progress.lag_ms // 1000)
