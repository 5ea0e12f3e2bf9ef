"""The result of a job as it is stored, with all results that it names."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class StoredResult:
    """The result of a job; results by task; the tasks of groups, and the output tasks of those that have one."""

    text: str | None
    texts: dict[int, str | None] = field(default_factory=dict)
    members: dict[int, list[int]] = field(default_factory=dict)
    outputs: dict[int, int] = field(default_factory=dict)
