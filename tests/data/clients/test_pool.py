"""Clients that are lent: reused after success, thrown away after trouble."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from aaiclick.data.clients.pool import AT_ONCE, PooledClient
from aaiclick.errors import DataUnreachable


class Counted:
    """Stands where clickhouse-connect's client stands; it counts itself."""

    made = 0
    closed = 0

    def __init__(self) -> None:
        type(self).made += 1

    def command(self, sql: str, settings: Any = None) -> None:
        if sql == "fail":
            raise RuntimeError("Code: 1. DB::Exception: failed")

    def close(self) -> None:
        type(self).closed += 1


def pool(keep_after_error: bool) -> tuple[PooledClient, type[Counted]]:
    kind = type("Counted", (Counted,), {})
    return PooledClient(kind, keep_after_error=keep_after_error), kind


async def test_a_client_is_used_again() -> None:
    client, kind = pool(True)
    for _ in range(5):
        await client.command("fine")
    assert (kind.made, kind.closed) == (1, 0)
    await client.close()
    assert kind.closed == 1


@pytest.mark.parametrize(("keep", "made"), [(True, 1), (False, 2)])
async def test_after_an_error_an_embedded_client_is_not_used_again(keep: bool, made: int) -> None:
    client, kind = pool(keep)
    with pytest.raises(Exception, match="failed"):
        await client.command("fail")
    await client.command("fine")
    assert kind.made == made
    await client.close()
    assert kind.closed == made


async def test_only_so_many_statements_run_at_once() -> None:
    running, most, lock = 0, 0, threading.Lock()
    go_on = threading.Event()

    class Waiting(Counted):
        def command(self, sql: str, settings: Any = None) -> None:
            nonlocal running, most
            with lock:
                running += 1
                most = max(most, running)
                if running == AT_ONCE:
                    go_on.set()
            go_on.wait(30)
            with lock:
                running -= 1

    client = PooledClient(Waiting, keep_after_error=True)  # type: ignore[arg-type]
    await asyncio.gather(*(client.command("wait") for _ in range(2 * AT_ONCE)))
    assert most == AT_ONCE
    await client.close()


async def test_closing_waits_for_what_is_under_way() -> None:
    started, go_on = threading.Event(), threading.Event()

    class Waiting(Counted):
        def command(self, sql: str, settings: Any = None) -> None:
            started.set()
            go_on.wait(30)

    client = PooledClient(Waiting, keep_after_error=True)  # type: ignore[arg-type]
    asked = asyncio.ensure_future(client.command("wait"))
    await asyncio.to_thread(started.wait, 30)
    closing = asyncio.ensure_future(client.close())
    await asyncio.sleep(0)
    go_on.set()
    await asyncio.gather(asked, closing)
    assert Waiting.closed == 1
    with pytest.raises(DataUnreachable, match="the client is closed"):
        await client.command("late")
