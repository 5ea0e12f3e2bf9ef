"""Ids: 63-bit integers that are unique without asking the database for each, and grow with time.

    41 bits: milliseconds since 2024    10 bits: machine id    12 bits: sequence

A process that makes ids holds a **grant**: one machine id, and a window of milliseconds for it. No window is granted
twice, because its end is stored before it is used. Therefore two processes cannot make the same id whatever their
clocks, host names and pids are. Neither a clock that is set back nor a machine id that changes hands after a crash
repeats an id.

Machine ids are divided into three ranges, so that ids from different sources never collide:

    0 to 511       allotted. State in SQLite: a locked file beside the database, whose slot number is the machine id.
                   State on a server: a table with the end of the last window of each machine id. A connected process
                   asks for a window, again before it ends, and passes it to `offer_grant`.
    512 to 767     set by hand with AAICLICK_MACHINE_ID, held by one process of a local root at a time.
    768 to 1023    drawn at random, with a random start of the sequence, for ids made before a server was asked. Only
                   these can collide (docs/decisions/0003-ids.md gives the odds); then a primary key refuses the row.

A child process that runs tasks makes no ids itself: it borrows them from its worker (`borrow_ids`).

A grant says which milliseconds may be used, not what the time is. With state on a server, the time is the server's: the
connected process passes it to `tell_time`, and the monotonic clock advances it. With SQLite it is the wall clock's,
never going back. Ids of all processes thus follow the order of creation, however long a process was idle. If the time
goes back, ids stay at the last millisecond until it is reached again. If the sequence of a millisecond is used up, the
next millisecond is used ahead of time: ten seconds ahead at most, then the maker waits.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from aaiclick.backend import ensure_root
from aaiclick.clock import SYSTEM_CLOCK, Clock
from aaiclick.config import Settings, settings
from aaiclick.errors import IdsExhausted, InputError
from aaiclick.id_grants import (
    ALLOTTED_MACHINE_IDS,
    RANDOM_MACHINE_IDS,
    SEQUENCES,
    Grant,
    IdSource,
    LocalSlots,
    OfferedGrants,
    random_grant,
    wall_ms,
)
from aaiclick.urls import shown

EPOCH = datetime(2024, 1, 1, tzinfo=UTC)
EPOCH_MS = int(EPOCH.timestamp() * 1000)
LAST_MS = EPOCH_MS + 2**41 - 1
ID_MAX = 2**63 - 1

AHEAD_MS_MAX = 10_000

BLOCK_MIN, BLOCK_MAX = 16, 4096
"""Ids that are borrowed at a time."""

BORROWED_S_MAX = 0.5
"""Seconds after which unused borrowed ids are dropped, because the time in them is past."""

ROUND_TRIP_S_MAX = 0.5
"""Seconds: a server's time from a slower answer is ignored as imprecise, unless none is known yet."""


class IdMaker:
    """Makes ids from the grants of a source; safe for threads.

    While the source has no grant, a random machine id is used.
    """

    def __init__(
        self, source: IdSource, *, clock: Clock = SYSTEM_CLOCK, pause: Callable[[float], None] = time.sleep
    ) -> None:
        self.source = source
        self._clock = clock
        self._monotonic = clock.monotonic
        self._pause = pause
        self._lock = threading.Lock()
        self._grant = _NO_GRANT
        self._ms = EPOCH_MS
        self._anchor_ms = self._pace_ms = EPOCH_MS - self._monotonic() * 1000
        """Offsets in ms from the monotonic clock to the time, and to the base from which ids may run ahead."""
        self._is_told = False
        self._next = self._end = 0

    def one(self) -> int:
        """Return an id, higher than all before it."""
        with self._lock:
            self._follow_time()
            made = self._next
            self._next = made + 1
            return made

    def many(self, count: int) -> list[int]:
        """Return so many ids, each higher than the one before."""
        made: list[int] = []
        with self._lock:
            while len(made) < count:
                self._follow_time()
                end = min(self._end, self._next + count - len(made))
                made.extend(range(self._next, end))
                self._next = end
        return made

    def switch(self, source: IdSource) -> None:
        """Replace the source; its grants and the present one are dropped."""
        with self._lock:
            self.source.forget()
            self.source = source
            self._is_told = self._is_told and isinstance(source, OfferedGrants)
            self._drop_grant()

    def tell_time(self, now_ms: int, asked_at_s: float) -> None:
        """Use the server's time from now on: `now_ms` answered a query made at `asked_at_s` of the monotonic clock."""
        with self._lock:
            answered_at_s = self._monotonic()
            if self._is_told and answered_at_s - asked_at_s > ROUND_TRIP_S_MAX:
                return
            self._is_told = True
            self._anchor_ms = now_ms - (asked_at_s + answered_at_s) * 500
            self._keep_pace()

    def ask_again(self) -> None:
        """Drop a grant of a random machine id, because the source has a grant now."""
        with self._lock:
            if self._grant.machine_id in RANDOM_MACHINE_IDS:
                self._drop_grant()

    def before_fork(self) -> None:
        """Take the lock, so that no other thread is inside it when the process is copied."""
        self._lock.acquire()

    def after_fork_in_parent(self) -> None:
        """Release the lock."""
        self._lock.release()

    def after_fork_in_child(self) -> None:
        """Replace the lock, and drop the grant, which the parent keeps."""
        self._lock = threading.Lock()
        self.source.forget()
        self._drop_grant()

    def _drop_grant(self) -> None:
        self._grant = _NO_GRANT
        self._next = self._end = 0

    def _follow_time(self) -> None:
        """Begin a new millisecond if the present one has passed or its sequence is used up."""
        now_ms = self._now_ms()
        if now_ms > self._ms or self._next == self._end:
            self._open(max(now_ms, self._ms + 1))

    def _now_ms(self) -> int:
        passed_ms = self._monotonic() * 1000
        now_ms = int(self._anchor_ms + passed_ms)
        if not self._is_told and (shown_ms := wall_ms(self._clock)) > now_ms:
            self._anchor_ms = shown_ms - passed_ms
            return shown_ms
        return now_ms

    def _open(self, ms: int) -> None:
        self._wait_if_ahead(ms)
        if ms >= self._grant.until_ms:
            ms = self._take_grant(ms)
        base = _base(ms, self._grant.machine_id)
        self._ms = ms
        self._next, self._end = base + self._grant.first_sequence, base + SEQUENCES

    def _take_grant(self, ms: int) -> int:
        """Take the next grant, and return the millisecond to begin with: `ms` or later."""
        grant = self.source.grant(ms)
        if grant is None or grant.until_ms <= ms:
            grant = random_grant(ms)
        self._grant = grant
        if grant.from_ms > ms:
            self._ms = ms = grant.from_ms
            self._keep_pace()
        return ms

    def _keep_pace(self) -> None:
        """Raise the base of the limit AHEAD_MS_MAX to the last millisecond, which a grant may have set ahead."""
        self._pace_ms = max(self._pace_ms, self._ms - self._monotonic() * 1000)

    def _wait_if_ahead(self, ms: int) -> None:
        ahead_ms = ms - max(self._anchor_ms, self._pace_ms) - self._monotonic() * 1000
        if ahead_ms > AHEAD_MS_MAX:
            self._pause((ahead_ms - AHEAD_MS_MAX) / 1000)


_NO_GRANT = Grant(0, 0, 0)


def _base(ms: int, machine_id: int) -> int:
    if ms > LAST_MS:
        hint = "Correct the clock of this machine."
        raise IdsExhausted(cause=f"Ids end with the year {_time(LAST_MS).year}, and the clock is beyond it", hint=hint)
    return (ms - EPOCH_MS) << 22 | machine_id << 12


class BorrowedIds:
    """Ids that another process makes for this one, in blocks; each block is twice as large as the one before.

    The rest of a block is dropped after BORROWED_S_MAX: a task's body may pause for hours between two ids.
    """

    def __init__(self, ask: Callable[[int], Sequence[int]], *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._ask = ask
        self._clock = clock
        self._lock = threading.Lock()
        self._left: list[int] = []
        self._block = BLOCK_MIN
        self._borrowed_at_s = 0.0

    def one(self) -> int:
        """Return an id, higher than all before it."""
        return self.many(1)[0]

    def many(self, count: int) -> list[int]:
        """Return so many ids, each higher than the one before."""
        with self._lock:
            if self._left and self._clock.monotonic() - self._borrowed_at_s > BORROWED_S_MAX:
                self._left, self._block = [], BLOCK_MIN
            while len(self._left) < count:
                self._left += self._ask(max(self._block, min(count - len(self._left), BLOCK_MAX)))
                self._borrowed_at_s = self._clock.monotonic()
                self._block = min(2 * self._block, BLOCK_MAX)
            made, self._left = self._left[:count], self._left[count:]
            return made

    def forget(self) -> None:
        """Drop the ids that are left, whose time is long past."""
        with self._lock:
            self._left = []
            self._block = BLOCK_MIN


class _BySettings:
    """An IdSource that chooses the source for the settings when the first id is made."""

    def __init__(self) -> None:
        self._source: IdSource | None = None

    def grant(self, at_ms: int) -> Grant | None:
        self._source = self._source or source_for(settings())
        return self._source.grant(at_ms)

    def forget(self) -> None:
        if self._source is not None:
            self._source.forget()


def source_for(config: Settings) -> IdSource:
    """Return the source for these settings: one fixed slot, slots beside the SQLite file, or grants of a server."""
    if config.machine_id is not None:
        return LocalSlots(ensure_root() / "machine_ids", range(config.machine_id, config.machine_id + 1))
    if config.sqlite_file is None:
        return OfferedGrants()
    if config.sqlite_file.parent == config.local_root:
        ensure_root()
    return LocalSlots(slots_directory(config.sqlite_file))


def slots_directory(database: Path) -> Path:
    """Return the directory of slots beside the database file, whose symbolic links are resolved."""
    real = database.resolve()
    return real.with_name(f"{real.name}.machine_ids")


_maker = IdMaker(_BySettings())
os.register_at_fork(
    before=_maker.before_fork,
    after_in_parent=_maker.after_fork_in_parent,
    after_in_child=_maker.after_fork_in_child,
)


_lender: BorrowedIds | None = None


def borrow_ids(ask: Callable[[int], Sequence[int]]) -> None:
    """Borrow all ids of this process from another one: `ask` returns so many. Forked children do not inherit this."""
    global _lender
    _lender = BorrowedIds(ask)


def forget_borrowed_ids() -> None:
    """Drop borrowed ids that are left; the next id is asked for anew."""
    if _lender is not None:
        _lender.forget()


def _borrow_no_more() -> None:
    global _lender
    _lender = None


os.register_at_fork(after_in_child=_borrow_no_more)


def new_id() -> int:
    """Return a new id, higher than all that this process made before."""
    return (_lender or _maker).one()


def new_ids(count: int) -> list[int]:
    """Return so many new ids in rising order."""
    if count < 0:
        raise InputError(field="count", value=count, rule="it must not be negative", hint="")
    return (_lender or _maker).many(count)


def set_id_source(source: IdSource | None) -> None:
    """Take grants from this source from now on; None means the source for the settings."""
    _maker.switch(source or _BySettings())


def use_slots_of(database: Path) -> None:
    """Use slots beside this SQLite file, for a connection to a file that may not be the one of the settings.

    AAICLICK_MACHINE_ID takes precedence.
    """
    directory = slots_directory(database)
    held = _maker.source
    if settings().machine_id is None and not (isinstance(held, LocalSlots) and held.directory == directory):
        _maker.switch(LocalSlots(directory))


def offer_grant(grant: Grant) -> None:
    """Use a window that the state's server allotted; ignored if AAICLICK_MACHINE_ID is set.

    In one transaction the server takes the machine id whose last window ends first, at W, stores a new end, and
    grants [max(W, now), end) by its own clock. If W is far ahead of now, all machine ids are in use and it grants none.
    """
    if grant.machine_id not in ALLOTTED_MACHINE_IDS or not EPOCH_MS <= grant.from_ms < grant.until_ms <= LAST_MS:
        raise InputError(field="grant", value=grant, rule="it is not a window of an allotted machine id", hint="")
    if settings().machine_id is not None:
        return
    source = _maker.source
    if not isinstance(source, OfferedGrants):
        source = OfferedGrants()
        _maker.switch(source)
    source.offer(grant)
    _maker.ask_again()


def tell_time(now_ms: int, asked_at_s: float) -> None:
    """Use the server's time for ids: `now_ms` answered a query made at `asked_at_s` of the monotonic clock."""
    _maker.tell_time(now_ms, asked_at_s)


def granted_until_ms() -> int:
    """Return the end of the offered grants in milliseconds since 1970; 0 if none was offered yet.

    With AAICLICK_MACHINE_ID it is LAST_MS, as no grant is needed.
    """
    if settings().machine_id is not None:
        return LAST_MS
    source = _maker.source
    return source.until_ms if isinstance(source, OfferedGrants) else 0


def id_time(made: int) -> datetime:
    """Return the time in an id, in UTC: when it was made, to the millisecond."""
    return _time(EPOCH_MS + (made >> 22))


def parse_id(value: object, field: str = "id") -> int:
    """Return an id given as text or int; raise InputError if it is not a whole number from 1 to ID_MAX."""
    number = int(value) if isinstance(value, str) and re.fullmatch("[1-9][0-9]{0,18}", value) else value
    if isinstance(number, int) and not isinstance(number, bool) and 1 <= number <= ID_MAX:
        return number
    rule = f"an id is a whole number from 1 to {ID_MAX}, in plain digits"
    raise InputError(field=field, value=_shown(value), rule=rule, hint="Copy the id from a list.")


def _shown(value: object) -> str:
    if isinstance(value, int) and value.bit_length() > 128:
        return f"a number of {value.bit_length()} bits"
    return shown(str(value)) if isinstance(value, str | int | float) else f"a {type(value).__name__}"


def _time(ms: int) -> datetime:
    return EPOCH + timedelta(milliseconds=ms - EPOCH_MS)
