"""Remembered results: the key under which a run asks for one, the answer, and the entries of the cache."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(slots=True, frozen=True)
class CacheKey:
    """The key of a run's result, computed where the body would run. All of it is plain data.

    `digest` covers the function, the version of its code, and the arguments or the key that takes their place. `inputs`
    is the digest of the arguments alone. `once`: it is an idempotency key, under which other arguments are a conflict.
    """

    digest: str
    entrypoint: str
    inputs: str
    label: str | None = None
    """The text of the key, if one takes the place of the arguments."""
    ttl_s: float | None = None
    refresh: bool = False
    once: bool = False


@dataclass(slots=True, frozen=True)
class CacheAnswer:
    """The answer to a run that asks for a remembered result.

    On a hit, the task is COMPLETED already, with `result_json`. `remembers`: the result of the body is to be
    remembered, with `refresh` in place of what is there now. `conflict`: the task that completed under the same
    idempotency key with other arguments.
    """

    hit: bool = False
    result_json: str = "null"
    remembers: bool = False
    refresh: bool = False
    conflict: int | None = None


@dataclass(slots=True, frozen=True)
class CacheEntry:
    """One remembered result. `task_id` is the task whose run made it."""

    id: int
    kind: str
    """`cache`, or `key` for an idempotency key."""
    entrypoint: str
    label: str | None
    job_id: int
    task_id: int
    epoch: int
    size: int
    """The number of characters of the stored result."""
    tables: int
    """How many tables it keeps."""
    created_at: datetime
    expires_at: datetime | None

    @classmethod
    def from_row(cls, row: Any) -> CacheEntry:
        """Make an entry from a row of `cache_entries`, with the size of its result and the number of its tables."""
        return cls(**{name: getattr(row, name) for name in cls.__slots__})
