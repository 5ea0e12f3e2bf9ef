"""What a token allows: each role may do all that those before it may."""

from __future__ import annotations

from enum import StrEnum


class Role(StrEnum):
    """What somebody may do."""

    VIEWER = "viewer"
    """Look at everything."""
    OPERATOR = "operator"
    """Also cancel, clear, retry, replay, drain and stop; run what is registered."""
    AUTHOR = "author"
    """Also say what is to be run: submit jobs and register them."""
    ADMIN = "admin"
    """Also read who changed what."""

    def may(self, needed: Role) -> bool:
        """Whether this role includes the other."""
        order = list(Role)
        return order.index(self) >= order.index(needed)
