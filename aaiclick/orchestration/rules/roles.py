"""The roles of tokens, in rising order: each includes the rights of those before it."""

from __future__ import annotations

from enum import StrEnum


class Role(StrEnum):
    """The rights of a token's holder."""

    VIEWER = "viewer"
    """Read everything except the audit."""
    OPERATOR = "operator"
    """Also cancel, clear, retry, replay, drain and stop; run registered jobs."""
    AUTHOR = "author"
    """Also submit jobs and register them."""
    ADMIN = "admin"
    """Also read the audit: who changed what."""

    def may(self, needed: Role) -> bool:
        """Return whether this role includes the needed one."""
        order = list(Role)
        return order.index(self) >= order.index(needed)
