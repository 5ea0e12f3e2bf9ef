"""How long a run may take."""

from __future__ import annotations

from aaiclick.config import settings
from aaiclick.orchestration.models import Claim


def timeout_of(claim: Claim) -> float | None:
    """Seconds that the run may take; None for any number."""
    return settings().task_timeout_s if claim.timeout_s is None else claim.timeout_s
