"""Sessions are begun until it succeeds, unless the worker is shut out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from aaiclick.clock import utc_now
from aaiclick.errors import BackendUnreachable, NotAuthenticated
from aaiclick.orchestration.execution.cutoff import Cutoff
from aaiclick.orchestration.execution.registration import begin_session
from aaiclick.orchestration.models import Orders, Worker, WorkerStatus
from tests.support.clocks import HandClock


class Registry:
    """Answers beats and registrations as it is told."""

    def __init__(self, *answers: Exception | bool | int) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    def _answer(self, verb: str) -> Any:
        self.asked.append(verb)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def beat(self, worker_id: int) -> Orders:
        return Orders(alive=self._answer("beat"))

    async def register(self, **facts: object) -> Worker:
        now = utc_now()
        return Worker(self._answer("register"), "h", 1, WorkerStatus.ACTIVE, now, now, now)


async def begun(registry: Registry, session: int) -> int:
    clock = HandClock()
    cutoff = Cutoff(30.0, 1.0, clock)
    found: Callable[..., Any] = begin_session
    return int(await found(registry, cutoff, "w", 1, None, session, clock))


AWAY = BackendUnreachable(url="x", cause="no")


async def test_a_session_that_lives_is_kept_and_one_that_is_over_replaced() -> None:
    assert await begun(Registry(AWAY, True), 7) == 7
    over = Registry(AWAY, False, AWAY, 8)
    assert await begun(over, 7) == 8
    assert over.asked == ["beat", "beat", "register", "register"]
    assert await begun(Registry(9), 0) == 9


@pytest.mark.parametrize("session", [0, 7])
async def test_whoever_is_shut_out_is_told(session: int) -> None:
    with pytest.raises(NotAuthenticated):
        await begun(Registry(AWAY, NotAuthenticated(cause="it was revoked", hint="")), session)
