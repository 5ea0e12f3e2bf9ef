"""Mend ClickHouse's log of inserts and their tokens, before the engine is opened.

ClickHouse logs a part before it renames the part into place. An engine that is killed in between has logged an insert
whose rows it does not have: sent again with the same token, they would be dropped as known.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

ADDED = b"1"
_PART = re.compile(r"(?P<partition>.+)_(?P<first>\d+)_(?P<last>\d+)_\d+(?:_\d+)?", re.ASCII)


def forget_torn_inserts(directory: Path) -> list[Path]:
    """Remove logged inserts that have no part; return the logs that were changed.

    Only the newest line of a log can be such an insert: tables put their parts into place one at a time.
    """
    return [log for logs in directory.glob("store/*/*/deduplication_logs") if (log := _newest(logs)) and _mend(log)]


def _newest(logs: Path) -> Path | None:
    numbered = {int(number): log for log in logs.iterdir() if (number := log.stem.rpartition("_")[2]).isdecimal()}
    written = [number for number, log in numbered.items() if log.stat().st_size]
    return numbered[max(written)] if written else None


def _mend(log: Path) -> bool:
    text = log.read_bytes()
    before = text[: text.rstrip(b"\n").rfind(b"\n") + 1]
    operation, part, *_ = text[len(before) :].decode().split("\t")
    if operation.encode() != ADDED or _is_there(log.parent.parent, part):
        return False
    mended = log.with_name(f"{log.name}.mended")
    mended.write_bytes(before)
    os.replace(mended, log)
    return True


def _is_there(table: Path, part: str) -> bool:
    """Return whether a table has the part, or one that it was merged into."""
    if (table / part).is_dir():
        return True
    wanted = _PART.fullmatch(part)
    assert wanted is not None, part
    return any(
        found["partition"] == wanted["partition"]
        and int(found["first"]) <= int(wanted["first"])
        and int(wanted["last"]) <= int(found["last"])
        for each in os.scandir(table)
        if (found := _PART.fullmatch(each.name)) is not None
    )
