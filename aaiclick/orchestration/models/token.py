"""Tokens, which authorize requests to the server, and entries of the audit log."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from aaiclick.orchestration.rules.roles import Role


@dataclass(slots=True, frozen=True)
class Token:
    """A token as of when it was read. Its secret is not stored."""

    id: int
    name: str
    role: Role
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None
    node_id: int | None = None
    """The node that alone may use it; only tokens of workers have one."""
    pool: str | None = None
    """The pool to which its nodes belong."""
    uses_left: int | None = None
    """How often it may be exchanged for the token of a node; only tokens for joining have this."""
    joined_with: int | None = None
    """The token that it was exchanged for."""

    @classmethod
    def from_row(cls, row: Any) -> Token:
        """Make a token from a row of the `tokens` table, without the digest of its secret."""
        facts = {name: getattr(row, name) for name in cls.__slots__}
        facts["role"] = Role(facts["role"])
        return cls(**facts)


@dataclass(slots=True, frozen=True)
class AuditEntry:
    """An entry of the audit log: an actor changed something, or tried to. No outcome: how it ended is not known."""

    id: int
    at: datetime
    actor_id: int | None
    actor: str
    verb: str
    target: str
    outcome: str | None

    @classmethod
    def from_row(cls, row: Any) -> AuditEntry:
        """Make an entry from a row of the `audit` table."""
        return cls(**{name: getattr(row, name) for name in cls.__slots__})
