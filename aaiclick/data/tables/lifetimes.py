"""The lifetimes of a context's tables: when they are dropped, also after a crash.

Before its first table, a context locks a file; the names of its tables contain the file's number. A table is dropped
when nothing refers to it any more, and at the end of its context. If the process dies, the lock of the file is released
with it; another process finds the file unlocked, and drops the tables.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import itertools
import json
import os
import secrets
import time
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from aaiclick.backend import get_root
from aaiclick.data.clients.contract import DataClient
from aaiclick.data.clients.opening import close_client, open_client
from aaiclick.data.embedded.directory_lock import refuse_foreign
from aaiclick.data.sql.quoting import text
from aaiclick.errors import AaiclickError, DataUnreachable, ObjectNotFound

PREFIX = "c"

Grant = Callable[[int], Awaitable[int]]
"""Takes the number of table names granted so far, grants more, and returns the new number."""

SWEPT_AT_ONCE = 50

SWEEP_EVERY_S = 60.0

LOST_MAX = 3
"""How often a table is made again if it is unknown whether it was made."""

T = TypeVar("T")

_swept_at: dict[Path, float] = {}


class Keeper:
    """Held by everything that reads a table: when the last reference is gone, the table is dropped."""

    __slots__ = ("__weakref__", "dropped", "table")

    def __init__(self, table: str) -> None:
        self.table = table
        self.dropped = False


class Lifetime:
    """The tables of one context: names them, and drops them when they are not used any more."""

    def __init__(
        self,
        client: DataClient,
        directory: Path | None = None,
        prefix: str = "",
        grant: Grant | None = None,
        granted: int = 0,
    ) -> None:
        """With a `directory`, lock a file there while the context lives; else the tables get the given `prefix`.

        With a `grant`, names beyond the first `granted` are granted before they are used; whoever grants them drops the
        tables that are left over.
        """
        self._client = client
        number = secrets.randbits(62)
        self.prefix = prefix or f"{PREFIX}{number}"
        self._file = None if directory is None else _lock_new(directory, number)
        self._tables: dict[str, weakref.finalize[[str], Keeper]] = {}
        self._number = 0
        self._granted = granted
        self._grant = grant
        self._there: set[str] = set()
        self._loop = asyncio.get_running_loop()
        self._unwanted: list[str] = []
        self._dropping: asyncio.Task[None] | None = None

    @property
    def left(self) -> tuple[str, ...]:
        """The tables that may exist: named, and not yet dropped."""
        return tuple(sorted(self._there))

    async def new_table(self) -> Keeper:
        """Return a keeper with the name of a table that is about to be made."""
        while self._grant is not None and self._number >= self._granted:
            self._granted = max(self._granted, await self._grant(self._granted))
        self._number += 1
        keeper = Keeper(f"{self.prefix}_{self._number}")
        self._there.add(keeper.table)
        finalizer = weakref.finalize(keeper, self._unused, keeper.table)
        finalizer.atexit = False
        self._tables[keeper.table] = finalizer
        return keeper

    def keep(self, table: str) -> None:
        """Stop tracking a table: it outlives the context."""
        finalizer = self._tables.pop(table, None)
        if finalizer is not None:
            finalizer.detach()

    def hand_over(self, keeper: Keeper) -> None:
        """Stop tracking a table that was renamed or dropped."""
        self.keep(keeper.table)
        self._there.discard(keeper.table)

    async def drop(self, keeper: Keeper) -> None:
        """Drop a table at once, although its keeper may still be held."""
        await drop(self._client, keeper.table)
        self.keep(keeper.table)
        self._there.discard(keeper.table)

    def _unused(self, table: str) -> None:
        """Queue a table to be dropped. Called when its last reference is released, on any thread."""
        self._unwanted.append(table)
        with suppress(RuntimeError):  # the loop is closed: the context has ended, or ends on another loop
            self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        if self._dropping is None or self._dropping.done():
            self._dropping = asyncio.ensure_future(self._drop_unwanted())

    async def _drop_unwanted(self) -> None:
        while self._unwanted:
            table = self._unwanted.pop()
            try:
                await drop(self._client, table)
            except AaiclickError:  # the end of the context tries again
                continue
            self._there.discard(table)
            self._tables.pop(table, None)

    async def end(self) -> None:
        """Drop all remaining tables. If that fails, a later sweep drops them, or whoever granted their names."""
        if self._dropping is not None:
            await asyncio.wait([self._dropping])
        self._unwanted.clear()
        tables, self._tables = self._tables, {}
        for finalizer in tables.values():
            finalizer.detach()
        try:
            for table in tables:
                await drop(self._client, table)
                self._there.discard(table)
        except AaiclickError:
            self._close_file()
            if self._grant is None:
                raise
        except BaseException:
            self._close_file()
            raise
        if self._file is not None:
            self._file.unlock_and_remove()

    def _close_file(self) -> None:
        if self._file is not None:
            self._file.close()


async def drop(client: DataClient, table: str) -> None:
    """Drop a table if it exists."""
    await client.tables.drop(client, table)


def new_mark() -> str:
    """Return a random mark for a table's comment, which tells the table from others of the same name."""
    return secrets.token_hex(8)


async def make_anew(client: DataClient, table: str, mark: str, make: Callable[[], Awaitable[T]]) -> T:
    """Make a table whose comment contains the mark. If the answer is lost, drop what was made of it, and try again.

    A table of that name without the mark belongs to someone else: it is not dropped, and `make` fails.
    """
    for _ in range(LOST_MAX):
        try:
            return await make()
        except DataUnreachable:
            ours = f"name = {text(table)} AND position(comment, {text(mark)}) > 0"
            found = await client.tables.look(client, "name", ours)
            if len(found.columns[0]):
                await drop(client, table)
    return await make()


async def clone(client: DataClient, tables: Mapping[str, str], **facts: Any) -> None:
    """Copy each table to the name it maps to, with these facts added to the comment. No rows move within one engine."""
    listed = ", ".join(map(text, tables))
    found = await client.tables.look(client, "name, comment", f"name IN ({listed})")
    comments = dict(zip(*found.columns, strict=True))
    for source, copy in tables.items():
        if source not in comments:
            raise ObjectNotFound(name=source, hint="Its table was dropped.")
        comment = json.dumps({**json.loads(comments[source] or "{}"), **facts})
        await client.tables.copy(client, source, copy, comment)


def directory_of(address: str) -> Path:
    """Return the directory with the lock files of the contexts that use this ClickHouse."""
    return get_root() / "contexts" / hashlib.sha256(address.encode()).hexdigest()[:16]


async def sweep_contexts(address: str) -> int:
    """Connect, drop the tables of contexts whose processes died, and return the number of tables."""
    directory = directory_of(address)
    if not has_contexts(directory):
        return 0
    client = await open_client(address)
    try:
        return await sweep(client, directory)
    finally:
        await close_client(address)


async def sweep(client: DataClient, directory: Path) -> int:
    """Drop the tables of up to SWEPT_AT_ONCE contexts whose processes died, and return the number of tables."""
    dropped = 0
    for file in itertools.islice(_abandoned(directory), SWEPT_AT_ONCE):
        try:
            prefix = text(f"{PREFIX}{file.number}_")
            found = await client.tables.look(client, "name", f"startsWith(name, {prefix})")
            for table in found.columns[0]:
                await drop(client, table)
                dropped += 1
        except BaseException:
            file.close()
            raise
        file.unlock_and_remove()
    return dropped


@asynccontextmanager
async def swept(client: DataClient, directory: Path) -> AsyncIterator[None]:
    """Inside the block, sweep abandoned contexts at once, and then every SWEEP_EVERY_S seconds."""
    await _sweep_if_due(client, directory)
    sweeping = asyncio.ensure_future(_keep_sweeping(client, directory))
    try:
        yield
    finally:
        sweeping.cancel()
        await asyncio.wait([sweeping])


async def _keep_sweeping(client: DataClient, directory: Path) -> None:
    while True:
        await asyncio.sleep(SWEEP_EVERY_S)
        with suppress(AaiclickError):  # the next round tries again
            await _sweep_if_due(client, directory)


async def _sweep_if_due(client: DataClient, directory: Path) -> None:
    """Sweep a directory unless another context of this process did so within the last SWEEP_EVERY_S seconds."""
    now = time.monotonic()
    if now - _swept_at.get(directory, float("-inf")) >= SWEEP_EVERY_S:
        _swept_at[directory] = now
        await sweep(client, directory)


def has_contexts(directory: Path) -> bool:
    """Return whether there are lock files, of living or dead processes."""
    return any(directory.glob("*.lock"))


# ---------------------------------------------------------------- lock files


class _Locked:
    """A lock file whose lock this process holds."""

    def __init__(self, path: Path, number: int, descriptor: int) -> None:
        self.path, self.number, self._descriptor = path, number, descriptor

    def unlock_and_remove(self) -> None:
        self.path.unlink(missing_ok=True)
        self.close()

    def close(self) -> None:
        os.close(self._descriptor)


def _lock_new(directory: Path, number: int) -> _Locked:
    for place in (directory.parent, directory):  # mkdir(parents=True) ignores the mode for parents
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        refuse_foreign(place)
    path = directory / f"{number}.lock"
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if path.exists():
            return _Locked(path, number, descriptor)
        os.close(descriptor)  # a sweeper removed the file before it was locked


def _abandoned(directory: Path) -> Iterator[_Locked]:
    """Yield the lock files of dead processes, each locked by this process; the caller closes them."""
    for path in sorted(directory.glob("*.lock")):
        if not path.stem.isdecimal():
            continue
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            continue
        yield _Locked(path, int(path.stem), descriptor)
