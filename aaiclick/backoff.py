"""Repeated failures: a growing pause before the next try, and a log line at once, then once a minute.

For loops that must go on while a database or a server does not answer.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Awaitable, Callable, Hashable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TypeVar

from aaiclick.clock import SYSTEM_CLOCK, Clock, utc_now
from aaiclick.errors import AaiclickError

log = logging.getLogger("aaiclick")

TROUBLE_S_MIN, TROUBLE_S_MAX = 0.05, 2.0
"""Seconds to wait before the next try: doubled at each failure, between these bounds."""

AGAIN_S = 60.0
"""Seconds between two log lines about a failure that lasts."""

CALM_S = 10.0
"""A failure that returns within this many seconds after a success counts as the same: no log line before AGAIN_S."""

SAID_MAX = 300
"""Characters of a cause that are logged: some drivers quote the whole statement."""

CALL_S_MAX = 60.0
"""Seconds after which `insist` abandons a call and makes it again: its answer may be lost in the network."""

THINGS_MAX = 100
"""How many things of one kind have a `Backoff` of their own; further ones share one."""

T = TypeVar("T")


class Backoff:
    """The state of one operation that may fail repeatedly.

    Logs a failure at once, again once a minute while it lasts, and when it ends. `pause_s` is the time to wait
    before the next try, in seconds. Safe for threads.
    """

    def __init__(self, clock: Clock = SYSTEM_CLOCK, *, level: int = logging.WARNING) -> None:
        self.pause_s = 0.0
        self._clock, self._level = clock, level
        self._what = ""
        self._began: tuple[float, datetime] | None = None
        self._ended_at: float | None = None
        self._count = 0
        self._kinds: set[tuple[type[BaseException], int | None]] = set()
        """Error types (with errno) logged since the failures began: a new type is logged at once."""
        self._told_at = float("-inf")
        self._told = False
        """Whether a failure was logged and its end was not."""
        self._lock = threading.Lock()

    @property
    def going_on(self) -> bool:
        """Whether the last try failed."""
        return self._began is not None and self._ended_at is None

    @contextmanager
    def told(self, what: str, then: str = "trying again", *, of: type[Exception] = Exception) -> Iterator[None]:
        """Count the block as a failure or a success. Errors of type `of` are suppressed; see `going_on` after it."""
        try:
            yield
        except of as error:
            self.met(what, error, then)
        else:
            self.over()

    def met(self, what: str, error: BaseException, then: str = "trying again") -> None:
        """Count and maybe log a failure: `what` names the operation («claiming»), `then` says what is done about it."""
        with self._lock:
            since = self._note(what, error)
        if since is not None:  # logged after the lock is released: a logging handler may meet the same failure
            log.log(self._level, "%s fails%s: %s; %s", what, since, said(error), then)

    def _note(self, what: str, error: BaseException) -> str | None:
        """Count a failure. Return the text about earlier ones if this one is to be logged, else None."""
        now = self._clock.monotonic()
        if self._began is None or (self._ended_at is not None and now - self._ended_at >= CALM_S):
            self._began, self._count = (now, utc_now(self._clock)), 0
            self._kinds.clear()
        self._what, self._ended_at = what, None
        self._count += 1
        self.pause_s = min(max(self.pause_s * 2, TROUBLE_S_MIN), TROUBLE_S_MAX)
        kind = (type(error), getattr(error, "errno", None))
        if kind in self._kinds and now - self._told_at < AGAIN_S:
            return None
        self._kinds.add(kind)
        self._told_at, self._told = now, True
        return f" since {self._began[1]:%H:%M:%S} UTC ({self._count} times)" if self._count > 1 else ""

    def over(self) -> None:
        """Count a success: reset the pause, and log the end of the failures if they were logged."""
        if self._began is None or self._ended_at is not None:
            return
        with self._lock:
            if self._ended_at is not None:
                return
            self._ended_at = self._clock.monotonic()
            self.pause_s = 0.0
            told, self._told = self._told, False
            lasted_s = self._ended_at - self._began[0]
        if told:
            log.log(self._level, "%s works again, after %.0f s and %d failed tries", self._what, lasted_s, self._count)


class Backoffs:
    """A `Backoff` for each thing of one kind, such as tables to drop, created at the thing's first use."""

    def __init__(self, clock: Clock = SYSTEM_CLOCK, *, level: int = logging.WARNING) -> None:
        self._clock, self._level = clock, level
        self._of: dict[Hashable, Backoff] = {}
        self._others = Backoff(clock, level=level)
        """Shared by all things beyond `THINGS_MAX`."""

    def of(self, thing: Hashable) -> Backoff:
        """Return the thing's `Backoff`; drop those of things that work again when there are too many."""
        known = self._of.get(thing)
        if known is not None:
            return known
        if len(self._of) >= THINGS_MAX:
            self._of = {each: trouble for each, trouble in self._of.items() if trouble.going_on}
        if len(self._of) >= THINGS_MAX:
            return self._others
        return self._of.setdefault(thing, Backoff(self._clock, level=self._level))

    def over(self, thing: Hashable) -> None:
        """Count a success of this thing, if it has a `Backoff`."""
        if (known := self._of.get(thing)) is not None:
            known.over()


def said(error: BaseException) -> str:
    """Return the error as one short line for a log. Errors other than AaiclickError are prefixed with their type."""
    line = one_line(error)
    kind = "" if isinstance(error, AaiclickError) else type(getattr(error, "orig", None) or error).__name__
    told = f"{kind}: {line}" if kind and kind != line else line
    return told if len(told) <= SAID_MAX else f"{told[:SAID_MAX]}…"


def one_line(error: BaseException | None) -> str:
    """Return the driver's message as one line without a full stop, and without the statement SQLAlchemy adds.

    An empty message gives the name of the error's type.
    """
    error = getattr(error, "orig", None) or error
    words = error.args[1] if error is not None and _is_numbered(error.args) else error
    line = " ".join(str(words).split()).rstrip(".")
    return line or type(error).__name__


def _is_numbered(args: tuple[object, ...]) -> bool:
    """Return whether these are a driver's error number and message."""
    return len(args) == 2 and isinstance(args[0], int) and isinstance(args[1], str)


async def insist(
    what: str, call: Callable[[], Awaitable[T]], clock: Clock, *, but: tuple[type[Exception], ...] = ()
) -> T:
    """Call until it succeeds and return the answer; a call that takes longer than CALL_S_MAX is made again.

    Errors of the types in `but` are raised.
    """
    import asyncio  # callers of this have it loaded; modules that need only `said` are spared its import

    trouble = Backoff(clock)
    while True:
        try:
            async with asyncio.timeout(CALL_S_MAX):
                answer = await call()
        except but:
            raise
        except Exception as error:
            trouble.met(what, error)
            await clock.sleep(trouble.pause_s)
        else:
            trouble.over()
            return answer
