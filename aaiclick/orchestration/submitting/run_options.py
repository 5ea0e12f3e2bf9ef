"""The options of one run of a registered job or a function."""

from __future__ import annotations

from typing import NamedTuple

from aaiclick.orchestration.models import Job, PreservationMode
from aaiclick.orchestration.rules.cache_policies import CacheMode


class RunOptions(NamedTuple):
    """The options of one run, as the caller gave them."""

    preservation_mode: PreservationMode | str | None = None
    key: str | None = None
    priority: int | None = None
    timeout_s: float | None = None
    cache_mode: CacheMode | str | None = None

    def asked(self, job: Job) -> list[object]:
        """Return what the digest of a key covers of them, in the form that they have in the job."""
        mode = self.preservation_mode and job.preservation_mode
        found: list[object] = [self.priority, self.timeout_s and float(self.timeout_s), mode]
        return [*found, job.cache_mode] if self.cache_mode else found
