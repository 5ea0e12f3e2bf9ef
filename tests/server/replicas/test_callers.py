"""Callers of a replica: the coordinator says who they are; what it said before counts while it is away."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import pytest

from aaiclick.clock import SYSTEM_CLOCK, utc_now
from aaiclick.errors import CoordinatorAway, CoordinatorUnreachable, NotAuthenticated
from aaiclick.orchestration.coordinator.http.protocol import Ask, Identity
from aaiclick.orchestration.store.database import Database
from aaiclick.server.replicas import callers as module
from aaiclick.server.replicas.callers import TRUSTED_S, AskedCallers, asking_as
from aaiclick.server.replicas.files import open_replica
from aaiclick.server.replicas.progress import Progress

T = TypeVar("T")
TOKEN = "aai_7_" + "x" * 43


class Coordinator:
    """Knows tokens, until it goes away."""

    def __init__(self) -> None:
        self.known = {TOKEN: Identity("operator")}
        self.asked = 0
        self.away = False

    async def ask(self, verb: str, asked: Ask, kind: type[T]) -> T:
        self.asked += 1
        assert verb == "who"
        if self.away:
            raise CoordinatorUnreachable(url="http://c", cause="it is away")
        if asking_as.get() not in self.known:
            raise NotAuthenticated(cause="it was revoked", hint="")
        found: Any = self.known[asking_as.get()]
        return found


class Later:
    """A clock that can be put forward."""

    def __init__(self) -> None:
        self.by_s = 0.0

    def monotonic(self) -> float:
        return SYSTEM_CLOCK.monotonic() + self.by_s

    def wall(self) -> float:
        return SYSTEM_CLOCK.wall() + self.by_s

    async def sleep(self, seconds: float) -> None:
        self.by_s += seconds


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    opened = await open_replica(tmp_path / "replica.db", utc_now)
    yield opened
    await opened.close()


@pytest.fixture
def coordinator() -> Coordinator:
    return Coordinator()


@pytest.fixture
def clock() -> Later:
    return Later()


def callers_of(database: Database, coordinator: Coordinator, clock: Later) -> AskedCallers:
    progress = Progress("http://c")
    progress.trouble = ""
    return AskedCallers(database, coordinator, progress, clock)


@pytest.fixture
def callers(database: Database, coordinator: Coordinator, clock: Later) -> AskedCallers:
    return callers_of(database, coordinator, clock)


async def test_a_token_is_asked_about_once_and_again_after_a_while(
    callers: AskedCallers, coordinator: Coordinator, clock: Later
) -> None:
    for _ in range(2):
        await callers.authenticate(TOKEN)
    token = await callers.authenticate(TOKEN)
    assert (token.id, token.role, coordinator.asked) == (7, "operator", 1)
    clock.by_s += TRUSTED_S
    await callers.authenticate(TOKEN)
    assert coordinator.asked == 2


async def test_one_that_was_revoked_is_refused_then_and_forgotten(
    callers: AskedCallers, coordinator: Coordinator, clock: Later, database: Database
) -> None:
    await callers.authenticate(TOKEN)
    coordinator.known.clear()
    assert await callers.still_counts(7)
    clock.by_s += TRUSTED_S
    assert not await callers.still_counts(7)
    with pytest.raises(NotAuthenticated):
        await callers.authenticate(TOKEN)
    coordinator.away = True
    again = callers_of(database, coordinator, clock)
    await again.load()
    with pytest.raises(CoordinatorAway):
        await again.authenticate(TOKEN)


async def test_what_is_known_counts_while_the_coordinator_is_away_also_after_a_restart(
    callers: AskedCallers, coordinator: Coordinator, clock: Later, database: Database, tmp_path: Path
) -> None:
    await callers.authenticate(TOKEN)
    coordinator.away = True
    clock.by_s += TRUSTED_S
    assert (await callers.authenticate(TOKEN)).role == "operator"
    again = callers_of(database, coordinator, clock)
    await again.load()
    assert (await again.authenticate(TOKEN)).role == "operator"
    with pytest.raises(CoordinatorAway, match="What your token is"):
        await again.authenticate("aai_8_" + "y" * 43)
    assert not await again.still_counts(8)
    with closing(sqlite3.connect(tmp_path / "replica.db")) as file:
        stored = " ".join(map(str, file.execute("SELECT * FROM replica_callers")))
    assert "x" * 43 not in stored


async def test_while_it_is_known_to_be_away_it_is_not_asked_about_known_tokens(
    database: Database, coordinator: Coordinator, clock: Later
) -> None:
    progress = Progress("http://c")
    progress.trouble = ""
    callers = AskedCallers(database, coordinator, progress, clock)
    await callers.authenticate(TOKEN)
    progress.trouble = "it is away"
    clock.by_s += TRUSTED_S
    await callers.authenticate(TOKEN)
    assert coordinator.asked == 1


async def test_a_token_ends_in_time_also_while_the_coordinator_is_away(
    callers: AskedCallers, coordinator: Coordinator, clock: Later
) -> None:
    coordinator.known[TOKEN] = Identity("viewer", 100.0, 60.0)
    token = await callers.authenticate(TOKEN)
    assert token.expires_at is not None
    assert token.expires_at - utc_now() < timedelta(seconds=61)
    coordinator.away = True
    clock.by_s += 61
    with pytest.raises(NotAuthenticated, match="expired"):
        await callers.authenticate(TOKEN)


async def test_what_has_not_the_form_of_a_token_is_not_asked_about(
    callers: AskedCallers, coordinator: Coordinator
) -> None:
    for wrong in ("", "x", "aai_0_" + "x" * 43, TOKEN + "y"):
        with pytest.raises(NotAuthenticated):
            await callers.authenticate(wrong)
    assert coordinator.asked == 0


async def test_a_bounded_number_is_remembered(
    callers: AskedCallers, coordinator: Coordinator, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "KNOWN_MAX", 2)
    for number in range(1, 5):
        text = f"aai_{number}_" + "z" * 43
        coordinator.known[text] = Identity("viewer")
        await callers.authenticate(text)
    again = callers_of(database, coordinator, Later())
    await again.load()
    assert len(again._known) == 2
