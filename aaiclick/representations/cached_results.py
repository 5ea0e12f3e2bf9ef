"""Remembered results: the entries of the cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from typing_extensions import TypedDict

from aaiclick.representations.fields import Form, Id, Time, facts_of, next_id

if TYPE_CHECKING:
    from aaiclick.orchestration.models import CacheEntry


class CacheEntryAnswer(TypedDict):
    """A remembered result. `kind`: `cache`, or `key` for an idempotency key, whose text is `label`."""

    id: Id
    kind: str
    entrypoint: str
    label: str | None
    job_id: Id
    task_id: Annotated[str, Form(pattern="^[0-9]{1,19}$", description="The task whose run made it.")]
    epoch: int
    size: Annotated[int, Form(description="How many characters the stored result has.")]
    tables: Annotated[int, Form(description="How many tables of Objects it keeps.")]
    created_at: Time
    expires_at: Time | None


class CachePage(TypedDict):
    """Remembered results, the newest first. `next` is the `before` of the page after this."""

    entries: list[CacheEntryAnswer]
    next: Id | None


class CacheCleared(TypedDict):
    """How many remembered results were removed."""

    removed: int


def cache_page(entries: Sequence[CacheEntry], limit: int | None) -> CachePage:
    """Return a page of remembered results."""
    return CachePage(entries=[facts_of(CacheEntryAnswer, each) for each in entries], next=next_id(entries, limit))
