"""A bucket of an S3-compatible object store: `{prefix}/{task_id}/{epoch}/{offset}`.

Objects cannot be appended to, so a log is a row of objects, each named by the offset of its first byte, and put only if
none has that name. When the log is complete, the first object is replaced by the whole log, an empty object `end` is
put, and the others go: at each point between, a reader finds the same bytes.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import groupby, islice
from typing import Any, NamedTuple

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, NotFoundError
from obstore.store import S3Store

from aaiclick.orchestration.log_stores.contract import AT_ONCE, PART_BYTES_MAX, Gone, LogPart
from aaiclick.orchestration.rules.naming.log_names import log_name, run_of_log

END = "end"
SIZES_KEPT = 10_000
JOINED_BYTES_MAX = 64 * 2**20
"""A longer log stays in its objects."""

READS_MAX = 3
"""How often a log is listed again, if its objects go while they are read: they were joined."""

_LIMITS: Any = {
    "client_options": {"timeout": "20s", "connect_timeout": "5s"},
    "retry_config": {"max_retries": 2, "retry_timeout": timedelta(seconds=20)},
}
"""Callers try again by themselves."""


class Chunk(NamedTuple):
    """One object of a log."""

    offset: int
    size: int

    @property
    def end(self) -> int:
        return self.offset + self.size


class Listed(NamedTuple):
    """The objects of one log: those that give its bytes without a gap, and whether it is complete."""

    chunks: list[Chunk]
    complete: bool

    @property
    def size(self) -> int:
        return self.chunks[-1].end if self.chunks else 0


class ObjectStore:
    """Implements `LogStore` on a bucket. Credentials, region and endpoint are those of the AWS_* variables."""

    def __init__(self, bucket: str, prefix: str = "") -> None:
        self.address = f"s3://{bucket}/{prefix}".rstrip("/")
        insecure = os.environ.get("AWS_ENDPOINT_URL", "").startswith("http://")
        client = _LIMITS["client_options"] | {"allow_http": insecure}
        self._store = S3Store(bucket, prefix=prefix or None, **_LIMITS | {"client_options": client})
        self._sizes: OrderedDict[tuple[int, int], int] = OrderedDict()

    def place_of(self, task_id: int, epoch: int) -> str:
        return f"{self.address}/{task_id:d}/{epoch:d}"

    def read(
        self, task_id: int, epoch: int | None = None, *, offset: int = 0, limit: int = PART_BYTES_MAX
    ) -> LogPart | None:
        found = max(self._epochs(task_id), default=None) if epoch is None else epoch
        if found is None:
            return None
        with _as_os_error():
            for left in reversed(range(READS_MAX)):
                listed = self._listed(task_id, found)
                if not listed.chunks and not listed.complete:
                    return None
                start = max(0, listed.size + offset) if offset < 0 else offset
                end = min(listed.size, start + min(limit, PART_BYTES_MAX))
                try:
                    data = b"".join(self._bytes(task_id, found, listed.chunks, start, end))
                except (FileNotFoundError, NotFoundError):  # the client raises either
                    if not left:
                        raise
                    continue
                return LogPart(data, listed.size, found, listed.complete)
        return None

    def write(self, task_id: int, epoch: int, offset: int, data: bytes, *, last: bool = False) -> int:
        run = (task_id, epoch)
        with _as_os_error():
            size = self._sizes.get(run)
            if size is None:
                size = self._listed(*run).size
            if offset <= size < offset + len(data):
                size = self._put(run, size, data[size - offset :])
            if last and offset + len(data) == size:
                self._finish(run)
        self._sizes[run] = size
        self._sizes.move_to_end(run)
        if len(self._sizes) > SIZES_KEPT:
            self._sizes.popitem(last=False)
        return size

    def remove(self, names: Iterable[str]) -> Gone:
        return self._remove(filter(None, map(run_of_log, names)))

    def remove_runs(self, task_ids: Iterable[int], runs: Iterable[tuple[int, int]]) -> Gone:
        return self._remove(runs)

    def old(self, before_s: float) -> Iterator[dict[str, int]]:
        found = self._old(before_s)
        while some := dict(islice(found, AT_ONCE)):
            yield some

    def names_of(self, task_ids: Collection[int]) -> set[str]:
        return {log_name(task, epoch) for task in task_ids for epoch in self._epochs(task)}

    # ---------------------------------------------------------------- objects

    def _put(self, run: tuple[int, int], size: int, data: bytes) -> int:
        """Add an object to a log of this size, and return its size now: another may have added one."""
        try:
            obstore.put(self._store, _key(run, size), data, mode="create")
        except AlreadyExistsError:
            return self._listed(*run).size
        return size + len(data)

    def _finish(self, run: tuple[int, int]) -> None:
        """Join the objects of a log, and mark it as complete."""
        listed = self._listed(*run)
        if listed.complete:
            return
        joins = listed.size <= JOINED_BYTES_MAX
        if len(listed.chunks) > 1 and joins:
            whole = b"".join(self._bytes(*run, listed.chunks, 0, listed.size))
            obstore.put(self._store, _key(run, 0), whole)
        obstore.put(self._store, f"{_folder(run)}{END}", b"")
        others = [path for path, _ in self._objects(_folder(run)) if not path.endswith((_key(run, 0), END))]
        if others and joins:
            obstore.delete(self._store, others)

    def _listed(self, task_id: int, epoch: int) -> Listed:
        chunks: list[Chunk] = []
        complete, size = False, 0
        for path, facts in sorted(self._objects(_folder((task_id, epoch)))):
            name = path.rpartition("/")[2]
            complete = complete or name == END
            chunk = Chunk(int(name), facts["size"]) if name.isascii() and name.isdigit() else None
            if chunk is not None and chunk.offset <= size < chunk.end:  # else others have its bytes, or some lack
                chunks.append(chunk)
                size = chunk.end
        return Listed(chunks, complete)

    def _bytes(self, task_id: int, epoch: int, chunks: list[Chunk], start: int, end: int) -> Iterator[bytes]:
        for chunk in chunks:
            if chunk.offset <= start < min(end, chunk.end):
                until = min(end, chunk.end)
                key = _key((task_id, epoch), chunk.offset)
                found = obstore.get_range(self._store, key, start=start - chunk.offset, end=until - chunk.offset)
                yield found.to_bytes()
                start = until

    def _objects(self, prefix: str) -> Iterator[tuple[str, Any]]:
        for some in obstore.list(self._store, prefix=prefix.rstrip("/") or None, chunk_size=1000):
            for facts in some:
                yield facts["path"], facts

    def _epochs(self, task_id: int) -> list[int]:
        with _as_os_error():
            names = {path.split("/")[-2] for path, _ in self._objects(f"{task_id:d}/")}
        return [int(name) for name in names if name.isascii() and name.isdigit()]

    def _remove(self, runs: Iterable[tuple[int, int]]) -> Gone:
        logs = 0
        trouble: Exception | None = None
        for run in runs:
            try:
                paths = [path for path, _ in self._objects(_folder(run))]
                if paths:
                    obstore.delete(self._store, paths)
                    logs += 1
            except BaseError as error:
                trouble = error
            self._sizes.pop(run, None)
        return Gone(logs, trouble)

    def _old(self, before_s: float) -> Iterator[tuple[str, int]]:
        """Yield logs of which no object is younger. Objects are listed in the order of their names."""
        with _as_os_error():
            for folder, objects in groupby(self._objects(""), lambda each: each[0].rpartition("/")[0]):
                task, _, epoch = folder.rpartition("/")
                run = run_of_log(f"{task}.{epoch}.log")
                if max(facts["last_modified"].timestamp() for _, facts in objects) < before_s and run is not None:
                    yield log_name(*run), run[0]


def _folder(run: tuple[int, int]) -> str:
    return f"{run[0]:d}/{run[1]:d}/"


def _key(run: tuple[int, int], offset: int) -> str:
    return f"{_folder(run)}{offset:019d}"


@contextmanager
def _as_os_error() -> Iterator[None]:
    """Raise what the store's client raises as an OSError, which the contract names."""
    try:
        yield
    except BaseError as error:
        raise OSError(f"the object store of the logs: {error}") from error
