"""A Redis beside the database of a test, with streams of the test's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

import pytest
from redis import Redis

from aaiclick.config import reset_settings


@contextmanager
def redis_beside(url: str, monkeypatch: pytest.MonkeyPatch, cleaned: str = "") -> Iterator[str]:
    """Set the Redis of this process and of what it starts; gives the prefix, whose streams are removed at the end.

    `cleaned` is the Redis where they are removed, if nobody answers at `url`.
    """
    prefix = f"test:{uuid4().hex}:"
    monkeypatch.setenv("AAICLICK_REDIS_URL", url)
    monkeypatch.setenv("AAICLICK_REDIS_PREFIX", prefix)
    reset_settings()
    try:
        yield prefix
    finally:
        with Redis.from_url(cleaned or url) as client:
            for key in client.scan_iter(f"{prefix}*"):
                client.delete(key)
