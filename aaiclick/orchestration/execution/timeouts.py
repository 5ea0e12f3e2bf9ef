"""The time limit of runs."""

from __future__ import annotations

from aaiclick.config import settings
from aaiclick.orchestration.models import Claim


def timeout_of(claim: Claim) -> float | None:
    """Return the time limit of a run in seconds: its own, else that of the settings; None for no limit."""
    return settings().task_timeout_s if claim.timeout_s is None else claim.timeout_s
