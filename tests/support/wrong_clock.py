"""`aaiclick` with a clock that is wrong by so many seconds: `python -m tests.support.wrong_clock SECONDS ARGUMENTS...`

The calendar is wrong, as seen by this process; the monotonic clock is right, as it is on a machine that is set wrong.
"""

from __future__ import annotations

import datetime
import sys
import time


class WrongDatetime(datetime.datetime):
    """A datetime whose now() asks the wrong clock too."""

    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> WrongDatetime:
        return cls.fromtimestamp(time.time(), tz)


def set_clock_wrong(shift_s: float) -> None:
    right, right_ns = time.time, time.time_ns
    time.time = lambda: right() + shift_s
    time.time_ns = lambda: right_ns() + int(shift_s * 1_000_000_000)
    datetime.datetime = WrongDatetime  # type: ignore[misc]


if __name__ == "__main__":
    set_clock_wrong(float(sys.argv.pop(1)))

    from aaiclick.cli import main  # what takes names of `time` takes the wrong ones

    main()
