"""What goes wrong again and again: tried ever later, and told in one line, at once and then once a minute."""

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
"""How long after a call that failed the next is tried."""

AGAIN_S = 60.0
"""Trouble that lasts is told this often."""

CALM_S = 10.0
"""Trouble that comes back sooner than this is the same: told with the next reminder."""

SAID_MAX = 300
"""Characters of a cause that are told: some drivers quote the statement."""

CALL_S_MAX = 60.0
"""After so long a call is given up and made again: the network may have swallowed it."""

THINGS_MAX = 100
"""So many things of one kind are told of one by one."""

T = TypeVar("T")


class Backoff:
    """One thing that may go wrong: told at once, again once a minute while it lasts, and at its end.

    It counts how long to wait before the next try, too. Any thread may tell.
    """

    def __init__(self, clock: Clock = SYSTEM_CLOCK, *, level: int = logging.WARNING) -> None:
        self.pause_s = 0.0
        self._clock, self._level = clock, level
        self._what = ""
        self._began: tuple[float, datetime] | None = None
        self._ended_at: float | None = None
        self._count = 0
        self._kinds: set[tuple[type[BaseException], int | None]] = set()
        """What was told of since it began: another cause is told at once."""
        self._told_at = float("-inf")
        self._told = False
        """Whether something was told of which the end was not."""
        self._lock = threading.Lock()

    @property
    def going_on(self) -> bool:
        """Whether the last try went wrong."""
        return self._began is not None and self._ended_at is None

    @contextmanager
    def told(self, what: str, then: str = "trying again", *, of: type[Exception] = Exception) -> Iterator[None]:
        """Tell how the block went. An error of this kind ends here: `going_on` says whether there was one."""
        try:
            yield
        except of as error:
            self.met(what, error, then)
        else:
            self.over()

    def met(self, what: str, error: BaseException, then: str = "trying again") -> None:
        """It went wrong, once more: `what` names the deed («claiming»), `then` says what is done about it."""
        with self._lock:
            since = self._note(what, error)
        if since is not None:  # told when the lock is free: a handler of logging may meet the same trouble
            log.log(self._level, "%s fails%s: %s; %s", what, since, said(error), then)

    def _note(self, what: str, error: BaseException) -> str | None:
        """Count one more; gives the words about those before if this one is to be told."""
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
        """It went well."""
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
    """Things of one kind, as tables to drop: each with a `Trouble` of its own, from the first time it goes wrong."""

    def __init__(self, clock: Clock = SYSTEM_CLOCK, *, level: int = logging.WARNING) -> None:
        self._clock, self._level = clock, level
        self._of: dict[Hashable, Backoff] = {}
        self._others = Backoff(clock, level=level)
        """Of all beyond `THINGS_MAX`, which are told together."""

    def of(self, thing: Hashable) -> Backoff:
        """The trouble with this one, which may have none yet."""
        known = self._of.get(thing)
        if known is not None:
            return known
        if len(self._of) >= THINGS_MAX:
            self._of = {each: trouble for each, trouble in self._of.items() if trouble.going_on}
        if len(self._of) >= THINGS_MAX:
            return self._others
        return self._of.setdefault(thing, Backoff(self._clock, level=self._level))

    def over(self, thing: Hashable) -> None:
        """It went well with this one."""
        if (known := self._of.get(thing)) is not None:
            known.over()


def said(error: BaseException) -> str:
    """An error in one line, short, for whoever reads a log: ours as it is, others by their kind too."""
    line = one_line(error)
    kind = "" if isinstance(error, AaiclickError) else type(getattr(error, "orig", None) or error).__name__
    told = f"{kind}: {line}" if kind and kind != line else line
    return told if len(told) <= SAID_MAX else f"{told[:SAID_MAX]}…"


def one_line(error: BaseException | None) -> str:
    """What the driver said, in a line without its full stop and without the statement; it may have said nothing."""
    error = getattr(error, "orig", None) or error
    words = error.args[1] if error is not None and _is_numbered(error.args) else error
    line = " ".join(str(words).split()).rstrip(".")
    return line or type(error).__name__


def _is_numbered(args: tuple[object, ...]) -> bool:
    """Whether these are a number of the driver's and its words."""
    return len(args) == 2 and isinstance(args[0], int) and isinstance(args[1], str)


async def insist(what: str, call: Callable[[], Awaitable[T]], clock: Clock) -> T:
    """Call until it goes well."""
    import asyncio  # whoever calls this has it loaded; what only reads words here need not

    trouble = Backoff(clock)
    while True:
        try:
            async with asyncio.timeout(CALL_S_MAX):
                answer = await call()
        except Exception as error:
            trouble.met(what, error)
            await clock.sleep(trouble.pause_s)
        else:
            trouble.over()
            return answer
