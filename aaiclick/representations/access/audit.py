"""The audit log: who changed what."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from typing_extensions import TypedDict

from aaiclick.representations.fields import Id, Time, facts_of, next_id

if TYPE_CHECKING:
    from aaiclick.orchestration.models.token import AuditEntry


class AuditAnswer(TypedDict):
    """A change from outside. Without an outcome it was cut off, and may have happened or not."""

    id: Id
    at: Time
    actor_id: Id | None
    actor: str
    verb: str
    target: str
    outcome: str | None


class AuditPage(TypedDict):
    """Changes from outside, newest first. `next` is the `before` of the next page."""

    entries: list[AuditAnswer]
    next: Id | None


def audit_page(entries: Sequence[AuditEntry], limit: int | None) -> AuditPage:
    """Return a page of the audit log."""
    return AuditPage(entries=[facts_of(AuditAnswer, entry) for entry in entries], next=next_id(entries, limit))
