"""What health says of Redis: it answers, it is away, it may drop what it was given."""

from __future__ import annotations

import pytest

from aaiclick.config import reset_settings
from aaiclick.orchestration.queries.health import health_check
from aaiclick.orchestration.queries.redis_health import judge_redis, look_at_redis
from tests.servers.process import free_port
from tests.support.front_door import local as local


async def test_it_answers(redis_server: str) -> None:
    detail, hint = await look_at_redis(redis_server)
    assert "answers in" in detail
    assert hint == ""


async def test_it_is_away_and_its_password_is_not_told() -> None:
    detail, hint = await look_at_redis(f"redis://me:hunter2@127.0.0.1:{free_port()}/0")
    assert "cannot be used: ConnectionError" in detail
    assert "hunter2" not in detail
    assert "goes on without it" in hint


@pytest.mark.parametrize("policy", ["noeviction", "volatile-lru"])
def test_a_policy_that_keeps_streams(policy: str) -> None:
    assert judge_redis("redis://host", 1.0, policy) == ("redis://host answers in 1.0 ms", "")


def test_a_policy_that_drops_streams() -> None:
    detail, hint = judge_redis("redis://host", 1.0, "allkeys-lru")
    assert "allkeys-lru may drop" in detail
    assert "noeviction" in hint


async def test_a_redis_that_is_away_is_a_warning_among_the_checks(
    local: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AAICLICK_REDIS_URL", f"redis://127.0.0.1:{free_port()}/0")
    reset_settings()
    found = await health_check()
    assert found
    assert found.checks[-1].name == "redis"
    assert found["redis"].ok
    assert found["redis"].hint
