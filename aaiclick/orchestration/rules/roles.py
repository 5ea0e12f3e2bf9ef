"""The roles of tokens. Four are in rising order, each with the rights of those before it; three stand beside it."""

from __future__ import annotations

from enum import StrEnum


class Role(StrEnum):
    """The rights of a token's holder."""

    VIEWER = "viewer"
    """Read everything except the audit log."""
    OPERATOR = "operator"
    """Also cancel, clear, retry, replay, drain and stop; run registered jobs."""
    AUTHOR = "author"
    """Also submit jobs and register them."""
    ADMIN = "admin"
    """Also read the audit log: who changed what."""

    WORKER = "worker"
    """Outside the order: run tasks, over the road of workers, and nothing else."""
    JOIN = "join"
    """Outside the order: be exchanged for a token of one node, and nothing else."""
    REPLICA = "replica"
    """Outside the order: copy jobs, tasks and events to a read-only server, unmasked, and nothing else."""

    def may(self, needed: Role) -> bool:
        """Return whether this role includes the needed one. Those outside the order include only themselves."""
        if self == needed:
            return True
        order = [Role.VIEWER, Role.OPERATOR, Role.AUTHOR, Role.ADMIN]
        return self in order and needed in order and order.index(self) >= order.index(needed)
