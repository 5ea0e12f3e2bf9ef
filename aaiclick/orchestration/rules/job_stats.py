"""Statistics of a job, and how they are told."""

from __future__ import annotations

from dataclasses import dataclass

from aaiclick.orchestration.rules.validation import escape_for_terminal


@dataclass(slots=True, frozen=True)
class JobStats:
    """The counts and times of a job."""

    job_id: int
    name: str
    status: str
    total_tasks: int
    completed_tasks: int
    by_status: dict[str, int]
    error: str | None
    queued_s: float | None
    """Seconds from its creation to its first claim; None before that."""
    duration_s: float | None
    """Seconds from its first claim to its end; None before that."""


def stats_text(stats: JobStats) -> str:
    """Return statistics as lines of text for display."""
    lines = [
        f"job {stats.job_id}  {escape_for_terminal(stats.name)}  {stats.status}",
        f"tasks {stats.completed_tasks}/{stats.total_tasks} completed",
        *(f"  {count:>8}  {status}" for status, count in stats.by_status.items()),
    ]
    if stats.queued_s is not None:
        lines.append(f"queued {stats.queued_s:.3f} s")
    if stats.duration_s is not None:
        lines.append(f"ran {stats.duration_s:.3f} s")
    if stats.error:
        lines.append(f"error {escape_for_terminal(stats.error)}")
    return "\n".join(lines)
