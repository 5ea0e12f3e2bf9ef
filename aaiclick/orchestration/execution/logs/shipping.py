"""Sending the logs of this process while their runs go on, from a thread of its own.

A log is written to the spool first, and sent from there in pieces, each with its offset: a piece whose answer was lost
is sent again, and changes nothing. After a cut it goes on where the receiver says. A log is complete before its run is
reported, unless that takes longer than `WAIT_S`; then it follows, and readers are told that the rest has yet to come.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from aaiclick.backoff import Backoff
from aaiclick.config import settings
from aaiclick.errors import AaiclickError, InputError, NotAllowed
from aaiclick.orchestration.execution.logs.run_logs import RunLog
from aaiclick.orchestration.execution.logs.spool import Shipment, Spool
from aaiclick.orchestration.models import Claim, Report

if TYPE_CHECKING:
    from aaiclick.orchestration.execution.logs.log_targets import LogTarget

log = logging.getLogger("aaiclick")

PIECE_BYTES_MAX = 65_536
"""Bytes of one piece; servers take no more."""

EVERY_S = 0.5
"""How often new output is sent."""

AT_ONCE = 4
"""How many logs are sent at the same time."""

WAIT_S = 10.0
"""For how long the report of a run waits for its log at most."""

GOODBYE_S = 10.0
"""For how long an ending worker goes on sending."""

WRITE_S_MAX = 30.0
"""How long one piece may take."""

FOLDER = "spool"

Making: TypeAlias = "Callable[[], LogTarget]"
"""Makes the target, on the loop of the thread that uses it."""


class Shipper:
    """The thread that sends logs."""

    def __init__(self, spool: Spool, make_target: Making, *, wait_s: float = WAIT_S) -> None:
        self.spool = spool
        self.wait_s = wait_s
        self._make_target = make_target
        self._target: LogTarget | None = None
        self._loop = asyncio.new_event_loop()
        self._changed = asyncio.Event()
        self._ending = False
        self._backoff = Backoff()
        self._thread = threading.Thread(target=self._main, name="aaiclick-log-shipping", daemon=True)
        spool.on_change = self._wake

    def start(self) -> None:
        """Start to send, first what ended processes have left."""
        if left := self.spool.take_over():
            log.info("%d logs of ended workers were left on this machine: they are sent now", left)
        self._thread.start()

    def begin(self, claim: Claim) -> Shipment:
        """Return the shipment for the log of a run."""
        shipment = self.spool.begin(claim.task_id, claim.epoch, claim.worker_id)
        self._wake()
        return shipment

    def close(self) -> None:
        """Send what is left, for a bounded time, and end the thread. What then is left stays in the spool."""
        self._ending = True
        self._wake()
        self._thread.join(GOODBYE_S + WRITE_S_MAX)
        if left := len(self.spool.shipments):
            log.warning("%d logs were not sent: the next worker of this machine sends them", left)
        if not self._thread.is_alive():
            self.spool.close()

    def _wake(self) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._changed.set)

    # ------------------------------------------------------------ on the thread

    def _main(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._live())
        except Exception:
            log.exception("the thread that sends logs has failed: they stay on this machine")
        finally:
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
            self._loop.close()

    async def _live(self) -> None:
        target = self._target = self._make_target()
        ends_at = float("inf")
        try:
            while True:
                self._changed.clear()
                await self._round(target)
                if self._ending:
                    ends_at = min(ends_at, self._loop.time() + GOODBYE_S)
                    if not self.spool.shipments or self._loop.time() >= ends_at:
                        return
                await self._pause()
        finally:
            target.close()

    async def _pause(self) -> None:
        """Wait for the next round: a moment while logs are written, longer if sending fails."""
        if self._backoff.pause_s:
            await asyncio.sleep(self._backoff.pause_s)
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(EVERY_S if self.spool.shipments else None):
                await self._changed.wait()

    async def _round(self, target: LogTarget) -> None:
        """Send whatever is new."""
        places = asyncio.Semaphore(AT_ONCE)

        async def send(shipment: Shipment) -> None:
            async with places:
                await self._send(target, shipment)

        due = [each for each in self.spool.shipments if each.ended or each.size > each.sent]
        results = await asyncio.gather(*map(send, due), return_exceptions=True)
        failures = [result for result in results if isinstance(result, BaseException)]
        if not failures:
            if due:
                self._backoff.over()
            return
        for failure in failures:
            if not isinstance(failure, (AaiclickError, OSError)):
                raise failure
        assert isinstance(failures[0], Exception)
        self._backoff.met("sending the logs of tasks", failures[0], then="they stay on this machine until then")

    async def _send(self, target: LogTarget, shipment: Shipment) -> None:
        """Send what there is of one log; forget it when it is complete, or refused."""
        shipment.place = target.place_of(shipment)
        try:
            while shipment.size > shipment.sent or shipment.ended:
                ended, size = shipment.ended, shipment.size  # in this order: nothing is added after the end
                data = shipment.piece(min(PIECE_BYTES_MAX, size - shipment.sent))
                last = ended and shipment.sent + len(data) >= size
                there = await target.write(shipment, shipment.sent, data, last=last)
                if last and there >= size:
                    self._settle(shipment, arrived=True)
                    return
                if there == shipment.sent and data:
                    raise OSError(f"the log does not grow beyond {there} bytes")
                shipment.sent = min(there, size)  # it may be less than before: then the receiver lost some
        except FileNotFoundError:
            if shipment.ended:  # nothing was written
                self._settle(shipment, arrived=True)
        except (NotAllowed, InputError) as refused:
            await self._give_up(target, shipment, refused)

    async def _give_up(self, target: LogTarget, shipment: Shipment, refused: AaiclickError) -> None:
        """Drop a log that is refused; say in it what is missing, if at least that is taken."""
        log.warning("the log of task %d, epoch %d, is refused: %s", *shipment.run, refused)
        missing = shipment.size - shipment.sent
        note = f"\n[aaiclick] {missing} bytes are missing here: the server refused them ({refused}).\n".encode()[:1000]
        with suppress(NotAllowed, InputError):
            await target.write(shipment, shipment.sent, note, last=True)
        self._settle(shipment, arrived=False)

    def _settle(self, shipment: Shipment, *, arrived: bool) -> None:
        self.spool.forget(shipment)
        shipment.settle(arrived)


_shipper: Shipper | None = None


@asynccontextmanager
async def shipping(make_target: Making | None) -> AsyncIterator[None]:
    """Send the logs of runs that begin inside the block; with None they stay in the directory of this machine."""
    global _shipper
    if make_target is None or _shipper is not None:
        yield
        return
    config = settings()
    wait_s = min(WAIT_S, config.session_s / 3)
    shipper = Shipper(Spool(config.log_dir / FOLDER, config.log_spool_mb * 1_000_000), make_target, wait_s=wait_s)
    shipper.start()
    _shipper = shipper
    try:
        yield
    finally:
        _shipper = None
        await asyncio.to_thread(shipper.close)


def begin_shipment(claim: Claim) -> Shipment | None:
    """Return the shipment for the log of a run; None if logs stay in the directory of this machine."""
    return None if _shipper is None else _shipper.begin(claim)


async def arrived(shipment: Shipment) -> bool:
    """Wait until a log that has ended was sent, for a bounded time. Return whether all of it has arrived."""
    waited = asyncio.wrap_future(shipment.settled)
    await asyncio.wait([waited], timeout=WAIT_S if _shipper is None else _shipper.wait_s)
    return waited.done() and waited.result()


async def sent(log: RunLog, report: Report) -> Report:
    """Wait, for a bounded time, until the log is where it is kept. Return the report, which names that place."""
    if log.shipment is None or log.path is None:
        return report
    with suppress(asyncio.CancelledError):  # the body has ended: its report counts, and the log follows
        await arrived(log.shipment)
    return replace(report, log_path=log.shipment.place)
