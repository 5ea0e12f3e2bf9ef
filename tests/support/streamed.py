"""Bodies over a transport of the tests' own: a pair of streams for each run, with threads of this process at its end.

What it shares with children is what every executor over a transport shares: `Elsewhere`, `RunAnswers` and `Asking`.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from concurrent.futures import Future
from functools import partial

from aaiclick.orchestration.execution.cutoff import Cutoff
from aaiclick.orchestration.execution.executors.child_process.run_requests import RunRequests
from aaiclick.orchestration.execution.executors.contract import Started
from aaiclick.orchestration.execution.executors.questions import Answer, EngineWanted, Question
from aaiclick.orchestration.execution.executors.remote_runs import RemoteRuns
from aaiclick.orchestration.execution.executors.run_answers import RunAnswers
from aaiclick.orchestration.execution.executors.transport import Lost, Outcome
from aaiclick.orchestration.execution.executors.wire import Ended, Inbox, Message, RunMessage, StopMessage, packed
from aaiclick.orchestration.execution.logs.run_logs import RunLog
from aaiclick.orchestration.execution.runs import output_capture
from aaiclick.orchestration.execution.runs.claim_inputs import narrowed
from aaiclick.orchestration.execution.runs.current import Running, going_on
from aaiclick.orchestration.execution.runs.failures import failure_of
from aaiclick.orchestration.execution.runs.run_scope import in_scope_of
from aaiclick.orchestration.execution.runs.run_services import RunServices
from aaiclick.orchestration.execution.runs.runner import run_claim
from aaiclick.orchestration.models import Claim, Done, Report

_HEAD = struct.Struct("!?I")
"""Whether it is output, rather than a message; how many bytes follow."""


class StreamTransport:
    """The worker's end."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, log: RunLog) -> None:
        self.spent = False
        self._reader, self._writer, self._log = reader, writer, log

    def begin(self, run: RunMessage, answers: RunAnswers) -> asyncio.Future[Outcome]:
        self._say(run)
        self._answers = answers
        self._reading = asyncio.create_task(self._read(answers))
        return self._reading

    def ask(self) -> None:
        self._say(StopMessage())

    def tell(self) -> None:
        self._say(StopMessage())

    def kill(self) -> None:
        self._writer.transport.abort()

    def close(self) -> None:
        self._answers.end()
        self._writer.close()

    def _say(self, message: Message) -> None:
        self._writer.write(packed(message))

    async def _read(self, answers: RunAnswers) -> Outcome:
        inbox = Inbox()
        while True:
            try:
                is_output, size = _HEAD.unpack(await self._reader.readexactly(_HEAD.size))
                data = await self._reader.readexactly(size)
            except (asyncio.IncompleteReadError, ConnectionError):
                return Lost("its connection was cut", "Look at the other end.")
            if is_output:
                self._log.write(data)
                continue
            for message in inbox.feed(data):
                if isinstance(message, Ended):
                    return message
                answers.answer(message, self._say)


class SentLog(RunLog):
    """What the body prints goes to the worker, which has the log."""

    def __init__(self, claim: Claim, end: FarEnd) -> None:
        super().__init__(claim.task_id, claim.epoch)
        self._end = end

    def write(self, data: bytes) -> None:
        self._end.send(True, data)


class FarEnd:
    """Where the body runs: reads on a thread of its own, so that any other may ask and wait."""

    def __init__(self, line: socket.socket, loop: asyncio.AbstractEventLoop) -> None:
        self._line, self._loop = line, loop
        self._lock = threading.Lock()
        self._answers: dict[int, Future[Answer]] = {}
        self._running: Running | None = None
        self._body: asyncio.Task[None] | None = None
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    @property
    def begun(self) -> bool:
        """Whether a run has come."""
        return self._body is not None

    def cut(self) -> None:
        """Let the connection be lost."""
        self._line.shutdown(socket.SHUT_RDWR)

    def ask(self, question: Question) -> Answer:
        answer = self._answers[question.serial] = Future()
        self.say(question)
        return answer.result()

    def say(self, message: Question | EngineWanted | Ended) -> None:
        self.send(False, packed(message))

    def send(self, is_output: bool, data: bytes) -> None:
        with self._lock:
            self._line.sendall(_HEAD.pack(is_output, len(data)) + data)

    def _read(self) -> None:
        inbox = Inbox()
        with self._line:
            while data := self._received():
                for message in inbox.feed(data):
                    self._take(message)
        self._stop()
        for answer in self._answers.values():
            answer.cancel()

    def _received(self) -> bytes:
        try:
            return self._line.recv(65_536)
        except OSError:
            return b""

    def _take(self, message: Message) -> None:
        if isinstance(message, RunMessage):
            self._running = Running(message.claim, SentLog(message.claim, self))
            self._running.services = asking = RunRequests(self)
            asking.loop_goes_on = True
            self._loop.call_soon_threadsafe(self._begin, self._running)
        elif isinstance(message, StopMessage):
            self._stop()
        elif isinstance(message, Answer):
            self._answers.pop(message.serial).set_result(message)

    def _stop(self) -> None:
        if self._running is not None:
            self._running.asked_to_stop = True
            self._loop.call_soon_threadsafe(self._cancel)

    def _begin(self, running: Running) -> None:
        self._body = self._loop.create_task(self._perform(running))

    def _cancel(self) -> None:
        if self._body is not None:
            self._body.cancel()

    async def _perform(self, running: Running) -> None:
        claim = running.claim
        report: Report
        try:
            with going_on(running), in_scope_of(claim):
                report = await run_claim(claim, interruptible=False)
        except asyncio.CancelledError as error:
            report = failure_of(claim, error)
        done, failure = (report, None) if isinstance(report, Done) else (None, report)
        try:
            self.say(Ended(done, failure, False))
        except OSError:
            assert running.asked_to_stop, "only a run that is stopped has nobody to tell"


class StreamExecutor:
    """Runs bodies in a loop on a thread, over streams."""

    def __init__(self) -> None:
        self.services: RunServices | None = None
        self._runs = RemoteRuns()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self.ends: list[FarEnd] = []

    def watch(self, cutoff: Cutoff) -> None: ...

    async def start(self) -> None:
        output_capture.install()
        self._thread.start()

    async def run(self, claim: Claim, started: Started) -> Report:
        return await self._runs.run(claim, partial(self._run, claim, started))

    def kill(self) -> None:
        self._runs.kill()

    async def close(self) -> None:
        output_capture.remove()
        for end in self.ends:
            await asyncio.to_thread(end.thread.join)
        self._loop.call_soon_threadsafe(self._loop.stop)
        await asyncio.to_thread(self._thread.join)
        self._loop.close()

    async def _run(self, claim: Claim, started: Started, log: RunLog) -> Report:
        output_capture.ensure()
        ours, theirs = socket.socketpair()
        transport = StreamTransport(*await asyncio.open_connection(sock=ours), log)
        self.ends.append(FarEnd(theirs, self._loop))
        started(log.path)
        answer = transport.begin(RunMessage(narrowed(claim), log.path), RunAnswers(claim, self.services))
        try:
            return await self._runs.finish(claim, transport, answer)
        finally:
            transport.close()
