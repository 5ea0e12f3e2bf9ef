"""Logs that are followed until their task ends, through all of its attempts and over all outages."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from aaiclick.client.calls import is_away, part, pause
from aaiclick.client.verbs.asking import OUTAGE_S_MAX, Id
from aaiclick.client.verbs.tasks import TaskVerbs
from aaiclick.clock import SYSTEM_CLOCK
from aaiclick.errors import AaiclickError, NotFound

SILENCE_S_MAX = 60.0
"""A log that says nothing for so long is asked for again: the connection may have been lost."""

ENDED_TASK = frozenset({"completed", "failed", "cancelled", "upstream_failed", "skipped"})


class LogVerbs(TaskVerbs):
    """Methods about following logs."""

    async def read_whole_log(self, task_id: Id, *, epoch: int | None = None) -> bytes:
        """Return all that the log of an attempt has now, by default of the newest; nothing if there is no log."""
        return b"".join([data async for data in self.iter_log(task_id, epoch=epoch)])

    async def follow_log(self, task_id: Id, *, offset: int = 0) -> AsyncGenerator[bytes, None]:
        """Yield what a task writes until it ends: the log of its current attempt, then those of all that follow.

        `offset` is where to begin in the log of the current attempt.
        """
        task = await self.get_task(task_id)
        if task["status"] in ENDED_TASK:
            async for data in self.iter_log(task_id, offset=offset):
                yield data
            return
        place, epoch = offset, task["epoch"]
        while task["status"] not in ENDED_TASK:
            async with aclosing(self._followed(task_id, epoch, place)) as parts:
                async for data in parts:
                    place += len(data)
                    yield data
            task = await self._patiently(lambda: self.get_task(task_id))
            if task["epoch"] != epoch or task["status"] in ENDED_TASK:  # the end, which a cut stream has not told
                async for data in self.iter_log(task_id, epoch=epoch, offset=place):
                    place += len(data)
                    yield data
            if task["epoch"] != epoch and task["status"] not in ENDED_TASK:
                place, epoch = 0, task["epoch"]
        for later in await self._attempts_after(task_id, epoch):
            async for data in self.iter_log(task_id, epoch=later):
                yield data

    async def _attempts_after(self, task_id: Id, epoch: int) -> list[int]:
        """Return the attempts that began and ended while nobody looked."""
        runs = (await self.list_task_runs(task_id))["runs"]
        return sorted({run["epoch"] for run in runs if run["epoch"] > epoch})

    async def _followed(self, task_id: Id, epoch: int, offset: int) -> AsyncGenerator[bytes, None]:
        """Yield the log of an attempt until it ends, or the stream does; what is left out is read by the next one."""
        place, failures, away_since = offset, 0, SYSTEM_CLOCK.monotonic()
        while True:
            query = {"epoch": epoch, "offset": place, "follow": True}
            try:
                path = f"/tasks/{part(task_id)}/logs"
                async with self._calls.stream(path, query, timeout_s=SILENCE_S_MAX) as exchange:
                    failures, away_since = 0, SYSTEM_CLOCK.monotonic()
                    async with aclosing(exchange.parts()) as parts:
                        async for data in parts:
                            place += len(data)
                            yield data
                    return
            except TimeoutError:
                return  # silent: the caller looks whether the task goes on
            except OSError as error:
                if SYSTEM_CLOCK.monotonic() - away_since > OUTAGE_S_MAX:
                    raise self._calls.unreachable(error) from error
            except AaiclickError as error:
                if not is_away(error) or SYSTEM_CLOCK.monotonic() - away_since > OUTAGE_S_MAX:
                    raise
            await self._calls.network.sleep(pause(failures))
            failures += 1

    async def iter_log(self, task_id: Id, *, epoch: int | None = None, offset: int = 0) -> AsyncGenerator[bytes, None]:
        """Yield what the log of an attempt has now, from a place on; nothing if there is no log."""
        while True:
            try:
                found = await self.read_log(task_id, epoch=epoch, offset=offset)
            except NotFound:
                return
            if not found.data:
                return
            yield found.data
            offset += len(found.data)
