"""Whether the Redis in AAICLICK_REDIS_URL answers, and whether it keeps what it is given."""

from __future__ import annotations

import asyncio
from typing import Any

from aaiclick.backoff import said
from aaiclick.clock import SYSTEM_CLOCK
from aaiclick.orchestration.bus.redis_connecting import RedisServer
from aaiclick.urls import mask_url

ANSWER_S_MAX = 3.0


async def look_at_redis(url: str) -> tuple[str, str]:
    """Return what was found, and a hint where something is missing: it is away, or may drop entries of streams."""
    try:
        async with asyncio.timeout(ANSWER_S_MAX):
            return await _look(url)
    except TimeoutError:
        return _away(url, f"it does not answer within {ANSWER_S_MAX:g} s")
    except Exception as error:
        return _away(url, said(error))


async def _look(url: str) -> tuple[str, str]:
    server = RedisServer(url, name="aaiclick-health")
    began = SYSTEM_CLOCK.monotonic()
    try:
        await server.client.ping()
        took_ms = 1000 * (SYSTEM_CLOCK.monotonic() - began)
        memory: dict[str, Any] = await server.client.info("memory")
    finally:
        await server.close()
    return judge_redis(url, took_ms, str(memory.get("maxmemory_policy", "noeviction")))


def judge_redis(url: str, took_ms: float, policy: str) -> tuple[str, str]:
    """Warn if entries that nobody has read yet may be dropped."""
    detail = f"{mask_url(url)} answers in {took_ms:.1f} ms"
    if policy.startswith("allkeys"):
        hint = "Set maxmemory-policy to noeviction."
        return f"{detail}; maxmemory-policy {policy} may drop entries of streams", hint
    return detail, ""


def _away(url: str, cause: str) -> tuple[str, str]:
    detail = f"{mask_url(url)} cannot be used: {cause}"
    return detail, "Everything goes on without it; workers look for work every few seconds."
