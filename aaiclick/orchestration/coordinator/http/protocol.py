"""The protocol between a worker and a server: its version, the bodies of its calls, and how they are written.

Each verb is `POST /api/v1/node/VERB`. A body is JSON or msgpack, as its Content-Type says; the answer is written as
Accept asks. Bodies of more than `PACKED_FROM` bytes may be compressed with gzip. Calls may be repeated: `again` says
that the answer to an earlier try may have been lost.

A worker speaks one version, a server two: its own and the one before, so that servers may be brought up to date before
their workers. What is not known is passed over on both sides; so a field that others need not know, with a default, is
no new version. Everything else is one, and a server then answers both.
"""

from __future__ import annotations

import zlib
from datetime import datetime
from typing import Any, TypeVar

import msgspec

from aaiclick.errors import InputError
from aaiclick.orchestration.models import CacheKey, Done, Failure, Held, Job, Stop
from aaiclick.orchestration.models.node_info import NodeDescription
from aaiclick.orchestration.models.sent_submission import SentSubmission
from aaiclick.orchestration.rules.lanes import PLAIN
from aaiclick.orchestration.rules.states import JobStatus, PreservationMode, RunType

PREFIX = "/api/v1/node/"
VERSION_HEADER = "Aaiclick-Node"
VERSION = 1


def understood(version: int) -> range:
    """Return the versions that a server understands whose own is this one."""
    return range(max(1, version - 1), version + 1)


VERSIONS = understood(VERSION)
"""The versions that a server of this release understands."""

JSON, MSGPACK, GZIP = "application/json", "application/msgpack", "gzip"
OCTETS = "application/octet-stream"

PACKED_FROM = 4_096
"""Bytes from which a body is compressed."""

HELD_S_MAX = 25.0
"""Seconds for which a server may hold a call without an answer; proxies give up after 30 or 60."""

LOG_PIECE_BYTES_MAX = 65_536
"""Bytes of a log in one call."""

UNPACKED_MAX = 256 * 2**20
"""Bytes of a body after decompression."""

T = TypeVar("T")


class Ask(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What all calls have in common."""

    again: bool = False
    """The answer to an earlier try may have been lost: find what it did, and do it only if it did nothing."""


class OfWorker(Ask, kw_only=True):
    """A call of one worker."""

    worker: int


class Register(OfWorker, kw_only=True):
    """Begin a session; `worker` is an id that the caller made."""

    hostname: str
    pid: int
    name: str | None = None
    concurrency: int = 1
    node: NodeDescription | None = None


class Beat(OfWorker, kw_only=True):
    """Renew the session, and compare the runs that are held."""

    known_call: int = 0
    held: list[Held] | None = None
    completed: int = 0
    failed: int = 0
    unreported_s: int = 0
    renew: str = ""
    """The digest of the secret of a new token, when the old one is to be renewed."""


class GivenToken(msgspec.Struct):
    """A token whose secret the caller has; it counts for so many seconds from now on."""

    id: int
    lives_s: float


class Ordered(msgspec.Struct):
    """The answer to a beat."""

    alive: bool
    drain: bool = False
    stop: list[tuple[int, int, Stop]] = []
    token: GivenToken | None = None


class Join(Ask, kw_only=True):
    """Exchange a token for joining for one of a node, whose secret has this digest."""

    node: NodeDescription
    digest: str


class Identity(msgspec.Struct):
    """Whose token it is: its role, and its life if it ends, in seconds: all of it, and what is left."""

    role: str
    lives_s: float | None = None
    left_s: float | None = None


class ClaimTasks(OfWorker, kw_only=True):
    """Claim tasks; the answer may be held for `wait_s` seconds. `since`: the place on the server's board of hints."""

    limit: int
    reserved_for: int = 0
    lanes: tuple[int, ...] | None = (PLAIN,)
    call: int = 0
    begins: int = 0
    wait_s: float = 0.0
    since: str = ""


class SentClaim(msgspec.Struct, omit_defaults=True):
    """A claim. Claims of one batch share their inputs: `given` is their place among `Claimed.given`."""

    task_id: int
    epoch: int
    job_id: int
    group_id: int | None
    name: str
    entrypoint: str
    kwargs_json: str
    attempt: int
    timeout_s: float | None
    priority: int = 0
    generation: int = 0
    stop_when_cut_off: bool = True
    cache_policy: str | None = None
    registered: bool = False
    installation: str = ""
    lane: int = PLAIN
    given: int | None = None


class Given(msgspec.Struct):
    """The inputs of claims; see `Claim`."""

    inputs: dict[int, str | None]
    members: dict[int, list[int]] = {}
    outputs: dict[int, int] = {}


class Claimed(msgspec.Struct, omit_defaults=True):
    """The answer to a claim: tasks, or the hints that ended the wait."""

    claims: list[SentClaim] = []
    given: list[Given] = []
    hints: list[str] = []
    since: str = ""


class Reports(OfWorker, kw_only=True):
    """The outcomes of runs."""

    done: list[Done] = []
    failed: list[Failure] = []


class Receipted(msgspec.Struct):
    """The answer to reports."""

    accepted: list[tuple[int, int]]
    conflicts: list[tuple[int, int]] = []
    due_s: float | None = None


class Runs(OfWorker, kw_only=True):
    """Runs of one worker, as (task, epoch)."""

    runs: list[tuple[int, int]]


class HoldTables(OfWorker, kw_only=True):
    """Register tables that a run is about to make."""

    task_id: int
    epoch: int
    tables: list[str]


class AwaitCallback(OfWorker, kw_only=True):
    """Accept callbacks for a run if the digest is not empty, and ask what was called back."""

    task_id: int
    epoch: int
    generation: int
    digest: str = ""


class RecallResult(OfWorker, kw_only=True):
    """Complete a run with the result that is remembered under this key, if there is one."""

    task_id: int
    epoch: int
    key: CacheKey


class Reconcile(Ask, kw_only=True):
    """Promote what is due, of one job or of all."""

    job_id: int | None = None


class Hear(Ask, kw_only=True):
    """Wait for hints that were told after `since`."""

    wait_s: float = 0.0
    since: str = ""


class Heard(msgspec.Struct):
    """Hints, and the place on the board up to which they were read."""

    hints: list[str]
    since: str


class GrantedIds(msgspec.Struct):
    """The time of the state in milliseconds, and a window in which ids may be made, if there is one."""

    now_ms: int
    machine_id: int | None = None
    from_ms: int = 0
    until_ms: int = 0


class AskIds(Ask, kw_only=True):
    """Ask for the right to make ids; `until_ms` is the end of the windows that the caller has."""

    until_ms: int = 0


class ForRun(Ask, kw_only=True):
    """A call of a body. `run`: (worker, task, epoch) of the run in whose name a node makes it."""

    run: tuple[int, int, int] | None = None


class Submit(ForRun, kw_only=True):
    """Store a graph."""

    graph: SentSubmission


class OfJob(ForRun, kw_only=True):
    """A question about a job."""

    job_id: int


class JobTables(OfJob, kw_only=True):
    """Tables of a job's arguments."""

    tables: list[str]
    mode: str | None = None


class Tables(ForRun, kw_only=True):
    """Names of tables."""

    tables: list[str]


class SentJob(msgspec.Struct, omit_defaults=True):
    """A job as plain data, as of when it was read."""

    id: int
    name: str
    status: JobStatus
    run_type: RunType
    preservation_mode: PreservationMode
    key: str | None = None
    key_digest: str | None = None
    registered_job_id: int | None = None
    priority: int = 0
    reserved_for: int = 0
    timeout_s: float | None = None
    result_json: str | None = None
    error: str | None = None
    total_tasks: int = 0
    open_tasks: int = 0
    completed_tasks: int = 0
    failed_tasks: int = 0
    failed_critical: int = 0
    created_at: datetime | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None
    fail_fast: bool = False
    scheduled_at: datetime | None = None
    backfill_id: int | None = None
    arguments: dict[str, Any] | None = None
    skipped_tasks: int = 0
    lane: int = 0

    @classmethod
    def of(cls, job: Job) -> SentJob:
        """Convert a job."""
        return cls(**{name: getattr(job, name) for name in cls.__struct_fields__})

    def job(self) -> Job:
        """Return the job."""
        return Job(**{name: getattr(self, name) for name in self.__struct_fields__})


class LogPiece(OfWorker, kw_only=True):
    """Bytes of the log of a run, at an offset; `last`: the log ends with them.

    They are the body of `PUT runs/{task_id}.{epoch}/log?worker=&offset=&last=`.
    """

    task_id: int
    epoch: int
    offset: int
    last: bool = False
    data: bytes = b""

    @property
    def target(self) -> str:
        """The path under PREFIX, with the query."""
        place = f"runs/{self.task_id:d}.{self.epoch:d}/log?worker={self.worker:d}&offset={self.offset:d}"
        return f"{place}&last=1" if self.last else place


class Written(msgspec.Struct):
    """How many bytes of a log the server has."""

    size: int


class Wrong(msgspec.Struct):
    """The body of a refusal, an RFC 9457 problem: `error` and `facts` are those of an `AaiclickError`."""

    detail: str = ""
    error: str = ""
    facts: dict[str, Any] = {}


# ---------------------------------------------------------------- writing and reading


def written(value: object, media: str) -> bytes:
    """Return a body as JSON or msgpack."""
    encode = msgspec.msgpack.encode if media == MSGPACK else msgspec.json.encode
    return encode(value, enc_hook=_plain)


def read(body: bytes, media: str, kind: type[T]) -> T:
    """Return what a body says; raise InputError if it is not of this kind."""
    decode = msgspec.msgpack.decode if media == MSGPACK else msgspec.json.decode
    try:
        return decode(body, type=kind)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise InputError(field="body", value=f"{len(body)} bytes", rule=str(error)[:300], hint="") from None


def _plain(value: object) -> str:
    """A fact of an error that is no plain data travels as its text."""
    return str(value)[:500]


def packed(body: bytes) -> bytes:
    """Return the body compressed."""
    squeeze = zlib.compressobj(1, zlib.DEFLATED, 31)
    return squeeze.compress(body) + squeeze.flush()


def unpacked(body: bytes) -> bytes:
    """Return the body decompressed; raise InputError if it is damaged or grows beyond `UNPACKED_MAX`."""
    inflate = zlib.decompressobj(31)
    try:
        found = inflate.decompress(body, UNPACKED_MAX)
    except zlib.error as error:
        raise InputError(field="body", value=f"{len(body)} bytes", rule=f"it is no gzip: {error}", hint="") from None
    if inflate.unconsumed_tail or not inflate.eof:
        rule = f"it is cut off, or has more than {UNPACKED_MAX} bytes"
        raise InputError(field="body", value=f"{len(body)} bytes in gzip", rule=rule, hint="")
    return found
