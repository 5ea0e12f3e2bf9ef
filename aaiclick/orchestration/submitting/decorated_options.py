"""The options that a decorator gives a function, for jobs that run it by name."""

from __future__ import annotations

from typing import Any, NamedTuple

from aaiclick.orchestration.rules.cache_policies import CacheMode
from aaiclick.orchestration.rules.placement import Placement
from aaiclick.orchestration.rules.resources import Resources
from aaiclick.orchestration.rules.states import PreservationMode
from aaiclick.orchestration.submitting.entrypoints import kind_of

TASK_OPTIONS = ("name", "max_retries", "retry", "timeout_s", "critical", "stop_when_cut_off", "placement", "resources")
"""The options of a `@task` that hold for it as the entry task of a job. It has no inputs, so `when` means nothing."""


class OwnOptions(NamedTuple):
    """The options that a `@job` gives its runs; a `@task` that runs as a job gives it its priority."""

    priority: int = 0
    timeout_s: float | None = None
    fail_fast: bool = False
    preservation_mode: PreservationMode | str | None = None
    placement: Placement | None = None
    resources: Resources | None = None
    cache_mode: CacheMode | str | None = CacheMode.USE


def own_options(found: Any) -> OwnOptions:
    """Return the options that this function, task factory or job factory gives the jobs that run it."""
    kind = kind_of(found)
    if kind == "job":
        return OwnOptions(*(getattr(found, field) for field in OwnOptions._fields))
    if kind == "task":
        return OwnOptions(found.priority, placement=found.placement, resources=found.resources)
    return OwnOptions()


def task_options(found: Any) -> dict[str, Any]:
    """Return the options that a `@task` gives its entry task; none for anything else."""
    if kind_of(found) != "task":
        return {}
    return {option: getattr(found, option) for option in TASK_OPTIONS} | getattr(found, "chosen_keys", {})
