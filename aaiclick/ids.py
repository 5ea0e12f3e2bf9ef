"""Ids: 63-bit integers that are unique without asking the database for each, and grow with time.

    41 bits: milliseconds since 2024    10 bits: machine id    12 bits: sequence

Whoever makes ids holds a **grant**: one machine id, and a window of milliseconds on it. No window is granted twice,
because its end is stored before it is used. So two processes cannot make the same id whatever their clocks, host names
and pids say; and neither a clock that is set back nor a machine id that changes hands after a crash can repeat one.

Machine ids come in three bands, so that ids of one kind never meet ids of another:

    0 to 511       allotted. State in SQLite: a locked file beside the database, whose slot number is the machine id.
                   State on a server: a table with the end of the last window of each machine id. Whoever connects
                   asks it, again before the window ends, and hands what it gives to `offer_grant`.
    512 to 767     set by hand with AAICLICK_MACHINE_ID, held by one process of a local root at a time.
    768 to 1023    drawn at random, with a random start of the sequence: for ids that are made before a server was
                   asked. These alone can meet (docs/decisions/0003-ids.md says how likely); a primary key refuses.

A child process that runs tasks makes none itself: it borrows them from its worker (`borrow_ids`).

A grant says which milliseconds may be used, not what the time is. That is the state's: whoever asks a server tells
the maker its time (`tell_time`), which goes on by the monotonic clock; beside SQLite it is the wall's, never backwards.
So ids of all processes follow creation however long one was idle. Where time seems to go back, ids stay at the last
millisecond until it is reached again. A millisecond that is used up is followed by the next one, ahead of time: by ten
seconds at most, after which the maker waits.
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
"""How many ids are borrowed at a time."""

BORROWED_S_MAX = 0.5
"""What was borrowed and not used by then would tell a time that has passed."""

ROUND_TRIP_S_MAX = 0.5
"""A time that took longer to arrive is not believed, unless none is known."""


class IdMaker:
    """Makes ids from the grants of a source; safe for threads.

    Where the source has none at hand, it goes on with a random machine id until the source has one.
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
        """What to add to the monotonic clock for the time, and for the millisecond that ids may run ahead of."""
        self._is_told = False
        self._next = self._end = 0

    def one(self) -> int:
        """An id, higher than all before it."""
        with self._lock:
            self._follow_time()
            made = self._next
            self._next = made + 1
            return made

    def many(self, count: int) -> list[int]:
        """So many ids, each higher than the one before."""
        made: list[int] = []
        with self._lock:
            while len(made) < count:
                self._follow_time()
                end = min(self._end, self._next + count - len(made))
                made.extend(range(self._next, end))
                self._next = end
        return made

    def switch(self, source: IdSource) -> None:
        """Ask another source from now on."""
        with self._lock:
            self.source.forget()
            self.source = source
            self._is_told = self._is_told and isinstance(source, OfferedGrants)
            self._drop_grant()

    def tell_time(self, now_ms: int, asked_at_s: float) -> None:
        """Go by the state's time from now on: this was the answer to who asked at that time of the monotonic clock."""
        with self._lock:
            answered_at_s = self._monotonic()
            if self._is_told and answered_at_s - asked_at_s > ROUND_TRIP_S_MAX:
                return
            self._is_told = True
            self._anchor_ms = now_ms - (asked_at_s + answered_at_s) * 500
            self._keep_pace()

    def ask_again(self) -> None:
        """Leave a random machine id for what the source has got now."""
        with self._lock:
            if self._grant.machine_id in RANDOM_MACHINE_IDS:
                self._drop_grant()

    def before_fork(self) -> None:
        """Let no other thread be halfway through when the process is copied."""
        self._lock.acquire()

    def after_fork_in_parent(self) -> None:
        """Go on."""
        self._lock.release()

    def after_fork_in_child(self) -> None:
        """Leave the grant to the parent."""
        self._lock = threading.Lock()
        self.source.forget()
        self._drop_grant()

    def _drop_grant(self) -> None:
        self._grant = _NO_GRANT
        self._next = self._end = 0

    def _follow_time(self) -> None:
        """Open a millisecond if the present one is over or used up."""
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
        """Take the next grant; the millisecond to begin with, which is ms or later."""
        grant = self.source.grant(ms)
        if grant is None or grant.until_ms <= ms:
            grant = random_grant(ms)
        self._grant = grant
        if grant.from_ms > ms:
            self._ms = ms = grant.from_ms
            self._keep_pace()
        return ms

    def _keep_pace(self) -> None:
        """The last millisecond may be beyond the time: from there on ids run no further ahead than from the time."""
        self._pace_ms = max(self._pace_ms, self._ms - self._monotonic() * 1000)

    def _wait_if_ahead(self, ms: int) -> None:
        ahead_ms = ms - max(self._anchor_ms, self._pace_ms) - self._monotonic() * 1000
        if ahead_ms > AHEAD_MS_MAX:
            self._pause((ahead_ms - AHEAD_MS_MAX) / 1000)


_NO_GRANT = Grant(0, 0, 0)


def _base(ms: int, machine_id: int) -> int:
    if ms > LAST_MS:
        hint = "Set the clock of this machine right."
        raise IdsExhausted(cause=f"Ids end with the year {_time(LAST_MS).year}, and the clock is beyond it", hint=hint)
    return (ms - EPOCH_MS) << 22 | machine_id << 12


class BorrowedIds:
    """Ids that another process makes for this one, a block at a time: each block is twice the last one.

    What is left of a block is forgotten when it is old: a body may rest for hours between two ids.
    """

    def __init__(self, ask: Callable[[int], Sequence[int]], *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._ask = ask
        self._clock = clock
        self._lock = threading.Lock()
        self._left: list[int] = []
        self._block = BLOCK_MIN
        self._borrowed_at_s = 0.0

    def one(self) -> int:
        """An id, higher than all before it."""
        return self.many(1)[0]

    def many(self, count: int) -> list[int]:
        """So many ids, each higher than the one before."""
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
        """Use no more of what is left: it would tell a time that is long past."""
        with self._lock:
            self._left = []
            self._block = BLOCK_MIN


class _BySettings:
    """The source that fits the settings, which are read when the first id is made."""

    def __init__(self) -> None:
        self._source: IdSource | None = None

    def grant(self, at_ms: int) -> Grant | None:
        self._source = self._source or source_for(settings())
        return self._source.grant(at_ms)

    def forget(self) -> None:
        if self._source is not None:
            self._source.forget()


def source_for(config: Settings) -> IdSource:
    """Slots beside a SQLite file, one fixed slot, or what a server will offer."""
    if config.machine_id is not None:
        return LocalSlots(ensure_root() / "machine_ids", range(config.machine_id, config.machine_id + 1))
    if config.sqlite_file is None:
        return OfferedGrants()
    if config.sqlite_file.parent == config.local_root:
        ensure_root()
    return LocalSlots(_slots_directory(config.sqlite_file))


def _slots_directory(database: Path) -> Path:
    """The slots live with the database whose ids they keep apart."""
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
    """Let another process make the ids of this one: `ask` gets so many from it. Not for what this process forks."""
    global _lender
    _lender = BorrowedIds(ask)


def forget_borrowed_ids() -> None:
    """Ask anew for the next id."""
    if _lender is not None:
        _lender.forget()


def _borrow_no_more() -> None:
    global _lender
    _lender = None


os.register_at_fork(after_in_child=_borrow_no_more)


def new_id() -> int:
    """An id for a new thing; higher than all that this process made before."""
    return (_lender or _maker).one()


def new_ids(count: int) -> list[int]:
    """So many ids, in rising order."""
    if count < 0:
        raise InputError(field="count", value=count, rule="it must not be negative", hint="")
    return (_lender or _maker).many(count)


def set_id_source(source: IdSource | None) -> None:
    """Take grants from this source from now on; None for the one that fits the settings."""
    _maker.switch(source or _BySettings())


def use_slots_of(database: Path) -> None:
    """Hold a slot beside this SQLite file; for whoever connects to one that may not be the settings'."""
    directory = _slots_directory(database)
    held = _maker.source
    if settings().machine_id is None and not (isinstance(held, LocalSlots) and held.directory == directory):
        _maker.switch(LocalSlots(directory))


def offer_grant(grant: Grant) -> None:
    """Use a window that the state's server allotted; ignored where AAICLICK_MACHINE_ID is set.

    The server takes, in one transaction, the machine id whose last window ends first, at W; stores a new end; and
    grants [max(W, now), end) by its own clock. Where W is far ahead of now, all are in use and it grants nothing.
    """
    if grant.machine_id not in ALLOTTED_MACHINE_IDS or not EPOCH_MS <= grant.from_ms < grant.until_ms <= LAST_MS:
        raise InputError(field="grant", value=grant, rule="no window of an allotted machine id", hint="")
    if settings().machine_id is not None:
        return
    source = _maker.source
    if not isinstance(source, OfferedGrants):
        source = OfferedGrants()
        _maker.switch(source)
    source.offer(grant)
    _maker.ask_again()


def tell_time(now_ms: int, asked_at_s: float) -> None:
    """Make ids by the state's time, which was asked for at that time of the monotonic clock."""
    _maker.tell_time(now_ms, asked_at_s)


def granted_until_ms() -> int:
    """When what was offered ends, in milliseconds since 1970; the end of time where nothing needs to be offered."""
    if settings().machine_id is not None:
        return LAST_MS
    source = _maker.source
    return source.until_ms if isinstance(source, OfferedGrants) else 0


def id_time(made: int) -> datetime:
    """When an id was made, in UTC, to the millisecond."""
    return _time(EPOCH_MS + (made >> 22))


def parse_id(value: object, field: str = "id") -> int:
    """An id that came from outside as text or number."""
    number = int(value) if isinstance(value, str) and re.fullmatch("[1-9][0-9]{0,18}", value) else value
    if isinstance(number, int) and not isinstance(number, bool) and 1 <= number <= ID_MAX:
        return number
    rule = f"an id is a whole number from 1 to {ID_MAX}, in plain digits"
    raise InputError(field=field, value=_shown(value), rule=rule, hint="Copy it from a list.")


def _shown(value: object) -> str:
    if isinstance(value, int) and value.bit_length() > 128:
        return f"a number of {value.bit_length()} bits"
    return shown(str(value)) if isinstance(value, str | int | float) else f"a {type(value).__name__}"


def _time(ms: int) -> datetime:
    return EPOCH + timedelta(milliseconds=ms - EPOCH_MS)
