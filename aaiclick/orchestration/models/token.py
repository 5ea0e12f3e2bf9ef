"""Who may come in from outside, and what they did."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from aaiclick.orchestration.rules.roles import Role


@dataclass(slots=True, frozen=True)
class Token:
    """A right to ask the server, as of when it was read; its secret is not kept."""

    id: int
    name: str
    role: Role
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None

    @classmethod
    def from_row(cls, row: Any) -> Token:
        """A token as the database has it, without the digest of its secret."""
        facts = {name: getattr(row, name) for name in cls.__slots__}
        facts["role"] = Role(facts["role"])
        return cls(**facts)


@dataclass(slots=True, frozen=True)
class AuditEntry:
    """Who changed, or tried to change, what; without an outcome nobody knows how it ended."""

    id: int
    at: datetime
    actor_id: int | None
    actor: str
    verb: str
    target: str
    outcome: str | None

    @classmethod
    def from_row(cls, row: Any) -> AuditEntry:
        """An entry as the database has it."""
        return cls(**{name: getattr(row, name) for name in cls.__slots__})
