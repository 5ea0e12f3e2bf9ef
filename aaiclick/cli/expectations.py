"""What tasks expected of their data and did not find, as `job get` and `task get` show it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from aaiclick.cli.output import printable, show_text

if TYPE_CHECKING:
    from aaiclick.orchestration.expectations import Unmet


def unmet_to_json(found: Sequence[Unmet]) -> list[dict[str, Any]]:
    """For programs; ids are strings."""
    return [each._asdict() | {"task_id": str(each.task_id), "at": each.at.isoformat()} for each in found]


def show_unmet(found: Sequence[Mapping[str, Any]]) -> None:
    """A line for each."""
    for each in found:
        show_text(f"expectation {each['outcome']} (task {each['task_id']}): {printable(each['line'])}")
